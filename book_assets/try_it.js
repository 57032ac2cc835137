/* The parts of a page that come alive: mask a span, ask a question.

   A part is an element `data-try="hide"` or `data-try="ask"` that `spanbert_tutorial/figures/try_it.py` wrote. It holds a stored
   example (what a reader sees without this script), and the same as JSON. Nothing is loaded until the reader acts; then
   `model.js` and the weights come as scripts from this file's folder, and the model computes in a thread of its own.

   A reader's text is only ever set as text, by `make` or as a value.                                              */

var TryIt = (function () {
  "use strict";

  const FOLDER = document.currentScript.src.replace(/[^/]*$/, "");
  const MODELS = {
    "spanbert-tiny": { says: "tiny: trained on the almanac’s small world, predicts while you type", size: "1.2 MB", longest: 60 },
    "spanbert-mini": { says: "mini: trained on Wikipedia, a larger download", size: "7.9 MB", longest: 128 },
    "spanbert-mini-squad": { size: "7.3 MB" },
  };
  const MOST_CHARACTERS = 5000; // more than any model here can read: not even cut into tokens
  const PAUSE = 120; // ms after a key before the model is asked
  const OPENING = 450; // ms between two words of the first move
  const QUIET = 600; // ms after a result before it is announced, so that typing is not talked over

  const { make, labeled, link } = Widgets;
  const option = (value, text) => make("option", { value }, text);
  const number = (value, digits = 2) => value.toFixed(digits).replace("-", "−");
  const range = (first, last) => Array.from({ length: last - first + 1 }, (_, i) => first + i);

  // --- models: loaded when the reader asks, once for the whole page -------------------------------------------------

  const scripts = new Map(), opened = new Map();

  /** A Promise that the script of this folder has run. */
  function script(name) {
    if (!scripts.has(name)) {
      scripts.set(name, new Promise((keep, refuse) => {
        const failed = () => {
          scripts.delete(name); // another try may work
          refuse(new Error(`The file ${name} could not be loaded: rebuild the book with “make book”.`));
        };
        document.head.append(make("script", { src: FOLDER + name, onload: keep, onerror: failed }));
      }));
    }
    return scripts.get(name);
  }

  /** A Promise of the model, whose methods are Promises, too. */
  function open(name) {
    if (!opened.has(name)) {
      const opening = (async () => {
        await script("model.js");
        await script(`models/${name}.js`);
        const weights = self.SPANBERT_WEIGHTS[name], model = SpanBERT.worker(weights);
        await model.ready;
        return model;
      })();
      opening.catch(() => opened.delete(name));
      opened.set(name, opening);
    }
    return opened.get(name);
  }

  /** Does `work` one at a time; what is asked meanwhile waits, and only the newest of it is done. */
  function newest(work) {
    let busy = false, waiting = false;
    return async () => {
      waiting = true;
      if (busy) return;
      for (busy = true; waiting; ) {
        waiting = false;
        await work();
      }
      busy = false;
    };
  }

  // --- the status line ----------------------------------------------------------------------------------------------

  /** One short line, announced to screen readers, with a bar while weights load. */
  class Status {
    constructor(text) {
      this.text = make("span", { role: "status" }, text);
      this.bar = make("progress", { "aria-label": "loading", hidden: true });
      this.element = make("p", { class: "try-status" }, this.text, this.bar);
    }
    /** heard: for screen readers only, because the page shows it elsewhere. */
    say(text, { problem = false, loading = false, heard = false, after = 0 } = {}) {
      clearTimeout(this.timer);
      const set = () => {
        if (this.text.textContent !== text) this.text.textContent = text;
        this.element.classList.toggle("try-problem", problem);
        this.element.classList.toggle("try-heard", heard);
        this.bar.hidden = !loading;
      };
      if (after) this.timer = setTimeout(set, after);
      else set();
    }
  }

  /** Opens a model, and says so while it takes its time. */
  async function openSaying(name, status) {
    const waiting = setTimeout(() => status.say(`Loading ${name}, ${MODELS[name].size}, only once.`, { loading: true }), 50);
    try {
      return await open(name);
    } finally {
      clearTimeout(waiting);
      status.bar.hidden = true;
    }
  }

  function checkCharacters(text) {
    if (text.length > MOST_CHARACTERS) {
      throw new Error(`The text has ${text.length} characters: use at most ${MOST_CHARACTERS}.`);
    }
  }

  // --- mask a span --------------------------------------------------------------------------------------------------

  /** [{token, word}] as words: [{tokens: [text], first: position of the first token}]. */
  function wordsOf(tokens) {
    const words = [];
    tokens.forEach(({ token, word }, position) => {
      words[word] ??= { tokens: [], first: position };
      words[word].tokens.push(token);
    });
    return words;
  }

  const nameOf = (word) => word.tokens.join("").replaceAll("##", "");

  /** Which words stay masked after an edit: those before the first and after the last changed word. */
  function carriedOver(masked, before, after) {
    const same = (i, j) => before[i] && after[j] && nameOf(before[i]) === nameOf(after[j]);
    let left = 0, right = 0;
    while (left < after.length && same(left, left)) left++;
    while (right < after.length - left && same(before.length - 1 - right, after.length - 1 - right)) right++;
    const moved = [...masked].map((i) => (i < left ? i : i >= before.length - right ? i + after.length - before.length : -1));
    return new Set(moved.filter((i) => i >= 0));
  }

  /** Tokens with their probabilities, a bar below each; ✓ at the right one. */
  const guesses = (list, right) => make("ol", { class: "try-guesses" }, ...list.map(({ token, probability }) =>
    make("li", { style: `--share:${(100 * probability).toFixed(1)}%` },
      make("bdi", {}, token), ` ${probability.toFixed(2)}${token === right ? " ✓" : ""}`)));

  /** The words as buttons that mask and unmask. changed: called after each change of `masked`; one: at most one span is
      masked, from the word that is pressed first to the one that is pressed next, and the outer words are only read. */
  class Words {
    constructor(changed, one = false) {
      [this.words, this.masked, this.boundary, this.at, this.anchor] = [[], new Set(), new Set(), 0, 0];
      [this.changed, this.one, this.open] = [changed, one, false];
      const says = one ? "press the first and the last word to mask" : "press one to mask or unmask it";
      this.element = make("div", {
        class: "try-words", role: "group", "aria-label": `The words of the text: ${says}`,
        onclick: (event) => this.clicked(event), onkeydown: (event) => this.pressed(event),
        onpointerdown: (event) => this.grasped(event), onpointermove: (event) => this.dragged(event),
        onfocusin: (event) => this.focused(this.position(event.target)),
      });
    }

    position(element) {
      return this.buttons.indexOf(element && element.closest("button"));
    }

    /** Other words, or the same in other tokens. */
    show(words) {
      this.words = words;
      const last = words.length - 1;
      this.buttons = words.map((word, i) => make("button", { type: "button", dir: "auto", disabled: this.one && (!i || i === last) },
        ...word.tokens.map((token) => make("span", {}, token))));
      this.element.replaceChildren(...this.buttons);
      this.at = this.one ? Math.min(...this.masked) : Math.min(this.at, Math.max(last, 0));
      this.mark();
    }

    mark() {
      this.words.forEach((word, i) => {
        const button = this.buttons[i], beside = word.tokens.some((_, k) => this.boundary.has(word.first + k));
        button.setAttribute("aria-pressed", this.masked.has(i));
        button.setAttribute("aria-label", nameOf(word) + (this.masked.has(i) ? ", masked" : beside ? ", boundary token" : ""));
        button.tabIndex = i === this.at ? 0 : -1;
        word.tokens.forEach((_, k) => {
          button.children[k].classList.toggle("try-boundary", !this.masked.has(i) && this.boundary.has(word.first + k));
        });
      });
    }

    /** The words that can be masked. */
    limits() {
      return this.one ? [1, this.words.length - 2] : [0, this.words.length - 1];
    }

    set(first, last, mask) {
      if (this.one) this.masked.clear();
      const [least, most] = this.limits();
      for (const i of range(Math.max(least, Math.min(first, last)), Math.min(most, Math.max(first, last)))) {
        if (mask || this.one) this.masked.add(i);
        else this.masked.delete(i);
      }
      this.boundary.clear(); // until the model has predicted again
      this.mark();
      this.changed();
    }

    focused(position) {
      if (position < 0) return;
      this.at = position;
      this.buttons.forEach((button, i) => (button.tabIndex = i === position ? 0 : -1));
    }

    clicked(event) {
      const position = this.position(event.target);
      if (position < 0 || this.moved) return (this.moved = false);
      const extends_ = event.shiftKey || (this.one && this.open && position !== this.anchor);
      this.open = this.one && !extends_;
      if (extends_) this.set(this.anchor, position, true);
      else this.set(position, position, !this.masked.has(position));
      this.anchor = position;
    }

    /** Dragging over several words masks or unmasks them all. A finger does so sideways; up and down it scrolls the page. */
    grasped(event) {
      this.from = this.position(event.target);
      [this.moved, this.to, this.masking] = [false, this.from, !this.masked.has(this.from)];
    }
    dragged(event) {
      if (!(event.buttons & 1) || !(this.from >= 0)) return;
      const to = this.position(document.elementFromPoint(event.clientX, event.clientY));
      if (to < 0 || to === this.to) return;
      [this.moved, this.open, this.to] = [true, false, to];
      this.set(this.from, to, this.masking);
    }

    pressed(event) {
      const [first, last] = this.limits(), to = { ArrowLeft: this.at - 1, ArrowRight: this.at + 1, Home: first, End: last }[event.key];
      if (event.key === "Escape" && this.masked.size && !this.one) return this.set(0, last, false);
      if (event.key === " " || event.key === "Enter") this.moved = false; // what follows is a click
      if (to === undefined) return;
      event.preventDefault();
      const next = Math.max(first, Math.min(to, last));
      if (!event.shiftKey && !this.open) this.anchor = next;
      this.buttons[next].focus();
      if (event.shiftKey) this.set(this.anchor, next, true);
    }
  }

  class Hide {
    constructor(root, data, name) {
      Object.assign(this, data);
      this.words = new Words(() => this.refresh());
      this.status = new Status("");
      this.result = make("div", { class: "try-result" });
      this.note = make("p", { class: "try-note" });
      this.text = make("textarea", { rows: 2 });
      for (const [name, value] of Object.entries({ dir: "auto", spellcheck: "false", autocomplete: "off" })) {
        this.text.setAttribute(name, value);
      }
      this.text.addEventListener("input", () => {
        this.note.textContent = "";
        clearTimeout(this.typing);
        this.typing = setTimeout(this.refresh, PAUSE);
      });
      this.model = make("select", { onchange: () => this.refresh() },
        ...this.models.map((name) => option(name, MODELS[name].says)));
      this.refresh = newest(() => this.compute());
      this.attentionView = this.examples.length > 1 ? new Attention() : null;
      const small = this.examples.length === 1, choice = [this.words.element, this.legend(small)];
      root.classList.toggle("try-small", small); // there the words come first, and the status stands beside the link
      root.append(...(small ? [...choice, this.result, ...this.controls(), this.status.element]
        : [...this.controls(), ...choice, this.status.element, this.result]));
      if (this.attentionView) root.append(this.attentionView.element);
      this.choose(this.examples[0]);
      this.words.show(wordsOf(this.stored.tokens));
      this.draw(this.stored);
      if (small && !location.hash) this.open(root);
      link(root, name, () => this.state(), (given) => this.restore(given));
    }

    /** A first move: the words are masked one after the other, then the predictions come. Whoever touches the part ends it. */
    open(root) {
      if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
      const all = [...this.words.masked];
      const show = (count) => {
        this.words.masked = new Set(all.slice(0, count));
        root.classList.toggle("try-opening", count < all.length);
        this.words.boundary = new Set(count < all.length ? [] : this.stored.positions.flatMap(({ boundary }) => boundary ?? []));
        this.words.mark();
      };
      const timers = range(1, all.length).map((count) => setTimeout(() => show(count), OPENING * count));
      const end = () => {
        if (root.classList.contains("try-opening")) show(all.length);
        timers.forEach(clearTimeout);
      };
      for (const event of ["pointerdown", "keydown", "input"]) root.addEventListener(event, end, { once: true, capture: true });
      show(0);
    }

    /** What a link keeps: the text, the model, and the masked words as 3-6 or 2,4. */
    state() {
      const runs = [];
      for (const i of [...this.words.masked].sort((a, b) => a - b)) {
        if (runs.length && runs.at(-1)[1] === i - 1) runs.at(-1)[1] = i;
        else runs.push([i, i]);
      }
      return { s: this.text.value, m: runs.map(([a, b]) => (a === b ? a + 1 : `${a + 1}-${b + 1}`)).join(), model: this.model.value };
    }

    restore({ s: text = "", m = "", model }) {
      const runs = m.split(",").map((run) => run.split("-").map((i) => Number(i) - 1));
      const masked = runs.flatMap(([a, b = a]) => (b >= a && b - a < 500 ? range(a, b) : []));
      this.offer(model);
      this.text.value = text;
      this.note.textContent = "";
      [this.words.masked, this.words.words] = [new Set(masked), []];
      this.refresh();
    }

    /** Adds a model to the choice, if it is one, and takes it. */
    offer(name) {
      if (!["spanbert-tiny", "spanbert-mini"].includes(name)) return;
      if (![...this.model.options].some((one) => one.value === name)) this.model.append(option(name, MODELS[name].says));
      this.model.value = name;
    }

    controls() {
      const choice = make("select", { onchange: () => this.take(this.examples[choice.selectedIndex]) },
        ...this.examples.map((one, i) => option(i, `${i + 1}. ${one.text}`)));
      const several = this.examples.length > 1 ? [labeled("Example", choice)] : [];
      const models = this.models.length > 1 ? [labeled("Model", this.model)] : [];
      return [...several, ...models, labeled("Your text", this.text), this.note];
    }

    legend(small) {
      return make("p", { class: "try-legend" },
        make("span", { class: "try-key try-key-hidden" }), " masked ", make("span", { class: "try-key try-key-boundary" }),
        " boundary token. Press words to mask or unmask them, or drag over them",
        small ? "." : "; with the keyboard: arrow keys, Space, and Shift with an arrow key for a span, Escape to unmask all.");
    }

    choose({ model, text, masked, note }) {
      [this.model.value, this.text.value, this.note.textContent] = [model, text, this.examples.length > 1 ? note : ""];
      this.words.masked = new Set(range(...masked));
    }

    take(example) {
      this.choose(example);
      this.words.words = []; // the masked words are those of the new text: nothing is carried over
      this.refresh();
    }

    async compute() {
      try {
        const text = this.text.value, name = this.model.value;
        checkCharacters(text);
        const model = await openSaying(name, this.status);
        const stale = () => text !== this.text.value || name !== this.model.value; // then another run comes
        const tokens = await model.tokenize(text);
        if (stale()) return;
        this.check(tokens, name);
        const words = wordsOf(tokens);
        this.follow(words);
        this.suggest(words, name);
        const masked = [...this.words.masked].map((i) => [words[i].first, words[i].first + words[i].tokens.length - 1]);
        const begun = performance.now(), result = await this.filled(model.fill(text, masked, { best: this.best }));
        if (stale()) return;
        this.draw(result);
        const ms = Math.round(performance.now() - begun);
        this.status.say(`${this.told(result)} (${name}, ${ms} ms)`, { after: QUIET });
        this.status.element.classList.remove("try-problem");
      } catch (error) {
        this.fail(error);
      }
    }

    /** The result, with a word to the reader if it takes long. */
    async filled(result) {
      const slow = setTimeout(() => this.status.say("Computing."), 400);
      try {
        return await result;
      } finally {
        clearTimeout(slow);
      }
    }

    /** The buttons follow the text. */
    follow(words) {
      const old = this.words.words, shape = (all) => all.map((word) => word.tokens.join(" ")).join("\n");
      if (shape(old) === shape(words)) return;
      const kept = old.length ? carriedOver(this.words.masked, old, words) : this.words.masked;
      this.words.masked = new Set([...kept].filter((i) => words[i]));
      // a text of the reader's own gets a span in its middle, of two words if it has as many inside
      const middle = words.length >> 1;
      if (!this.words.masked.size && words.length > 2) this.words.masked = new Set([Math.max(1, middle - 1), middle]);
      this.words.show(words);
    }

    /** Offers the larger model where the tiny one reads the words in many tokens. */
    suggest(words, name) {
      const tokens = words.reduce((sum, word) => sum + word.tokens.length, 0);
      if (name !== "spanbert-tiny" || tokens < 1.5 * words.length || this.note.textContent) return;
      this.note.replaceChildren("The tiny model does not know these words as whole tokens. ",
        make("button", { type: "button", onclick: () => {
          this.offer("spanbert-mini");
          this.note.textContent = "";
          this.refresh();
        } }, `Use spanbert-mini (${MODELS["spanbert-mini"].size})`));
    }

    check(tokens, name) {
      const { longest } = MODELS[name];
      if (!tokens.length) {
        this.words.masked.clear();
        this.words.show([]);
        throw new Error("There is no text: type a sentence.");
      }
      if (tokens.length > longest) {
        throw new Error(`The text has ${tokens.length} tokens, and ${name} reads at most ${longest}: shorten it.`);
      }
    }

    fail(error) {
      this.result.replaceChildren();
      if (this.attentionView) this.attentionView.clear();
      this.status.say(error.message, { problem: true });
    }

    /** The first guesses in one line, for those who hear it. */
    told({ positions }) {
      const first = (head) => positions.map((position) => (position[head] ? position[head][0].token : "none")).join(" ");
      return `MLM head: ${first("mlm")}. SBO head: ${first("sbo")}.`;
    }

    draw(result) {
      const { tokens, positions } = result;
      this.words.boundary = new Set(positions.flatMap((position) => position.boundary ?? []));
      this.words.mark();
      const head = ["masked", "MLM head", "SBO head"].map((name) => make("th", { scope: "col" }, name));
      let run = 0;
      const rows = positions.map((position, row) => {
        run = row && positions[row - 1].index === position.index - 1 ? run + 1 : 1;
        const right = tokens[position.index].token;
        const sub = make("small", {}, ` p${run}`);
        return make("tr", {}, make("th", { scope: "row", dir: "auto" }, right, sub),
          make("td", {}, this.guesses(position.mlm, right)), make("td", {}, this.guesses(position.sbo, right, position)));
      });
      const caption = make("caption", {}, "The heads’ predictions at the masked positions, with probabilities; ✓ as in the text");
      this.result.style.minHeight = `${this.result.offsetHeight}px`; // what stands below does not jump up
      this.result.replaceChildren(make("table", { class: "try-table" }, caption,
        make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows)), ...this.reads(result));
      if (this.attentionView && result.attention) this.attentionView.show(result);
    }

    guesses(list, right, position) {
      if (!list) {
        return position.boundary ? "none: it predicts at most 15 tokens of a span"
          : "none: the span touches an end of the text, so it has only one neighbor";
      }
      return guesses(list, right);
    }

    /** Which boundary tokens the SBO head has read. */
    reads({ tokens, positions }) {
      const pairs = new Map(positions.filter((position) => position.boundary).map((position) => [String(position.boundary), position.boundary]));
      if (!pairs.size || this.best === 1) return [];
      const said = [...pairs.values()].flatMap(([left, right], i) => [i ? "; " : "",
        make("bdi", { class: "try-boundary" }, tokens[left].token), " and ",
        make("bdi", { class: "try-boundary" }, tokens[right].token)]);
      return [make("p", { class: "try-legend" }, "The SBO head reads the hidden states of ", ...said,
        " and the position in the span; the MLM head reads the hidden state at the masked position itself.")];
    }
  }

  /** Where one head looks from one token. */
  class Attention {
    constructor() {
      const choice = () => make("select", { onchange: () => this.draw() });
      [this.layer, this.head] = [choice(), choice()];
      this.says = make("p", { class: "try-legend" });
      this.strip = make("div", { class: "try-strip", role: "group", "aria-label": "Press a token to see where it looks",
        onclick: ({ target }) => this.look([...this.strip.children].indexOf(target.closest("button"))),
        onkeydown: (event) => this.pressed(event) });
      this.element = make("details", { class: "try-attention", hidden: true }, make("summary", {}, "Attention: who looks where?"),
        make("div", { class: "try-row" }, labeled("Layer", this.layer), labeled("Head", this.head)), this.says, this.strip);
    }

    clear() {
      this.element.hidden = true;
    }

    show({ tokens, positions, attention, layers, heads, n }) {
      const numbered = (select, count) => {
        if (select.options.length === count) return;
        select.replaceChildren(...range(1, count).map((one) => option(one, String(one))));
      };
      numbered(this.layer, layers);
      numbered(this.head, heads);
      const names = ["[CLS]", ...tokens.map((one) => (one.masked ? "[MASK]" : one.token)), "[SEP]"];
      Object.assign(this, { attention, heads, n, names, from: positions[0].index + 1 });
      this.strip.replaceChildren(...names.map((name) => make("button", { type: "button", dir: "auto" },
        make("span", {}, name), make("small", {}))));
      this.element.hidden = false;
      this.draw();
    }

    look(position) {
      if (position < 0) return;
      this.from = position;
      this.draw();
    }

    pressed(event) {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step) return;
      event.preventDefault();
      this.look(Math.max(0, Math.min(this.from + step, this.n - 1)));
      this.strip.children[this.from].focus();
    }

    draw() {
      const map = (this.layer.value - 1) * this.heads + (this.head.value - 1), row = (map * this.n + this.from) * this.n;
      const weights = Array.from(this.attention.subarray(row, row + this.n));
      const percent = (weight) => `${Math.round(100 * weight)}%`;
      weights.forEach((weight, i) => {
        const button = this.strip.children[i];
        button.style.setProperty("--weight", `${(100 * weight).toFixed(1)}%`);
        button.children[1].textContent = percent(weight);
        button.setAttribute("aria-pressed", i === this.from);
        button.tabIndex = i === this.from ? 0 : -1;
      });
      const most = [...weights.keys()].sort((a, b) => weights[b] - weights[a]).slice(0, 3);
      const named = most.map((i) => `${this.names[i]} ${percent(weights[i])}`).join(", ");
      this.says.textContent = `Layer ${this.layer.value}, head ${this.head.value}: ${this.names[this.from]} (position `
        + `${this.from}) looks most at ${named}. Press another token to see where that one looks.`;
    }
  }

  // --- ask a question -----------------------------------------------------------------------------------------------

  const LOWEST = -45, HIGHEST = 15; // thresholds

  class Ask {
    constructor(root, data, name) {
      Object.assign(this, data);
      this.status = new Status("");
      this.note = make("p", { class: "try-note" });
      const edited = { oninput: () => (this.note.textContent = ""), dir: "auto", spellcheck: "false" };
      this.question = make("input", { type: "text", autocomplete: "off", ...edited });
      this.context = make("textarea", { rows: 5, ...edited });
      this.slider = make("input", { type: "range", min: LOWEST, max: HIGHEST, step: 0.1, value: 0, oninput: () => this.decide() });
      this.set = make("output");
      this.answer = make("p", { class: "try-answer" });
      this.sum = make("p", { class: "try-legend" });
      this.scores = make("div");
      this.took = ""; // nothing was computed for the stored example
      this.refresh = newest(() => this.compute());
      const choice = make("select", { onchange: () => this.take(this.examples[choice.selectedIndex]) },
        ...this.examples.map((one, i) => option(i, `${i + 1}. ${one.question}`)));
      const form = make("form", { onsubmit: (event) => { event.preventDefault(); this.refresh(); } },
        labeled("Example", choice), this.note, labeled("Question", this.question), labeled("Text", this.context),
        make("button", { class: "try-go" }, "Answer"), this.status.element);
      const threshold = make("div", { class: "try-row" },
        labeled("Threshold", make("span", { class: "try-slide" }, this.slider, this.set)));
      this.result = make("div", { class: "try-result" }, this.answer, threshold, this.sum, this.scores);
      root.append(form, this.result);
      this.choose(this.examples[0]);
      this.draw(this.stored, this.examples[0].context);
      link(root, name, () => ({ q: this.question.value, s: this.context.value, at: this.slider.value }), ({ q = "", s = "", at }) => {
        [this.question.value, this.context.value, this.slider.value, this.note.textContent] = [q, s, at || 0, ""];
        this.refresh();
      });
    }

    choose({ question, context, note }) {
      [this.question.value, this.context.value, this.note.textContent] = [question, context, note];
    }

    take(example) {
      this.choose(example);
      this.refresh();
    }

    async compute() {
      try {
        const [question, context] = [this.question.value, this.context.value];
        for (const text of [question, context]) checkCharacters(text);
        if (!question.trim()) throw new Error("There is no question: type one.");
        if (!context.trim()) throw new Error("There is no text: type or paste one.");
        const model = await openSaying(this.model, this.status);
        this.status.say("Computing.");
        const begun = performance.now(), result = await model.answer(question, context, { best: this.best });
        this.took = ` (${this.model}, ${Math.round(performance.now() - begun)} ms)`;
        this.draw(result, context);
        this.status.say(this.decision(), { heard: true });
      } catch (error) {
        this.result.hidden = true;
        this.status.say(error.message, { problem: true });
      }
    }

    decision() {
      return this.silent() ? "No answer." : `Answer: ${this.spans[0].text}`;
    }

    silent() {
      return this.nullOdds > Number(this.slider.value);
    }

    /** What the threshold makes of the scores. */
    decide() {
      const silent = this.silent(), threshold = number(Number(this.slider.value), 1), [best] = this.spans;
      this.set.textContent = threshold;
      this.answer.replaceChildren(make("b", {}, silent ? "No answer." : "Answer: "),
        ...(silent ? [" Forced to speak, it would say: ", make("bdi", {}, best.text)] : [make("bdi", { class: "try-said" }, best.text)]));
      this.sum.textContent = `null score ${number(this.nullScore)} − best score ${number(best.score)} = null odds `
        + `${number(this.nullOdds)}, ${silent ? "above" : "not above"} the threshold ${threshold}${this.took}`;
      for (const [i, token] of this.tokens.entries()) {
        token.classList.toggle("try-best", best.first <= i && i <= best.last);
        token.classList.toggle("try-silent", silent);
      }
      if (this.status.text.textContent) this.status.say(this.decision(), { heard: true, after: QUIET });
    }

    draw({ tokens, start, end, spans, nullScore, nullOdds }, context) {
      Object.assign(this, { spans, nullScore, nullOdds });
      this.result.hidden = false;
      this.tokens = this.bars(tokens, start, end, context);
      const strip = make("div", { class: "try-scores" });
      this.tokens.forEach((token, i) => { // tokens without a space between them stay together
        const joined = i && tokens[i].start === tokens[i - 1].end;
        (joined ? strip.lastChild : strip.appendChild(make("span"))).append(token);
      });
      const rows = spans.map((span, i) => [String(i + 1), make("bdi", {}, span.text), number(start[span.first]),
        number(end[span.last]), number(span.score)]);
      const all = tokens.map(({ token }, i) => [make("bdi", {}, token), number(start[i]), number(end[i])]);
      this.scores.replaceChildren(strip, make("p", { class: "try-legend" }, make("span", { class: "try-key try-key-start" }),
        " score as a start ", make("span", { class: "try-key try-key-end" }), " score as an end, as far as they are above the "
        + "middle score; ", make("span", { class: "try-key try-key-said" }), " the best span"),
      table("The best spans, highest sum first", ["rank", "span", "start", "end", "sum"], rows),
      make("details", {}, make("summary", {}, "The scores of all tokens as numbers"),
        table("Each token of the text as a start and as an end", ["token", "start", "end"], all)));
      this.decide();
    }

    /** Each token with a bar above it for its start and one below for its end. */
    bars(tokens, start, end, context) {
      const high = (scores) => {
        const middle = [...scores].sort((a, b) => a - b)[scores.length >> 1], most = Math.max(...scores) - middle;
        return scores.map((score) => (most > 0 ? Math.max(0, score - middle) / most : 0));
      };
      const [above, below] = [high(start), high(end)];
      return tokens.map(({ token, ...position }, i) => {
        return make("span", { style: `--start:${above[i].toFixed(3)};--end:${below[i].toFixed(3)}`,
          title: `start ${number(start[i])}, end ${number(end[i])}` },
        make("i"), make("bdi", {}, context.slice(position.start, position.end) || token), make("i"));
      });
    }
  }

  function table(caption, head, rows) {
    const look = (cell) => ({ class: typeof cell === "string" ? "try-number" : null }); // the reader's text comes in a bdi
    const cells = (row) => row.map((cell) => make("td", look(cell), cell));
    return make("table", { class: "try-table" }, make("caption", {}, caption),
      make("thead", {}, make("tr", {}, ...head.map((name) => make("th", { scope: "col", class: "try-number" }, name)))),
      make("tbody", {}, ...rows.map((row) => make("tr", {}, ...cells(row)))));
  }

  // --- all parts of the page ----------------------------------------------------------------------------------------

  const counts = {};

  /** Brings all parts of a kind to life. Part: its constructor gets the element, its data and its name in links. */
  function add(kind, Part) {
    for (const root of document.querySelectorAll(`[data-try="${kind}"]`)) {
      const data = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
      root.querySelector("[data-still]").remove();
      root.classList.add("try");
      counts[kind] = (counts[kind] || 0) + 1;
      new Part(root, data, kind + (counts[kind] > 1 ? counts[kind] : ""));
    }
  }

  add("hide", Hide);
  add("ask", Ask);
  return { add, Words, Status, guesses, number, range };
})();
