/* Beat the boundary: ten rounds against both heads of spanbert-mini. Rounds and predictions come with the page, made by
   `spanbert_tutorial/figures/try_it.py`; nothing is loaded, nothing is sent. */

(function () {
  "use strict";

  const { make, labeled, copier, link } = Widgets;
  const ROUNDS = 10, NAMES = { you: "You", sbo: "SBO head", mlm: "MLM head" };

  /** `many` different numbers below `all`, always the same for one seed (mulberry32). */
  function drawn(seed, all, many) {
    const random = () => {
      seed = (seed + 0x6d2b79f5) | 0;
      let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
    };
    const numbers = [...Array(all).keys()];
    for (let i = 0; i < many; i++) {
      const j = i + Math.floor(random() * (all - i));
      [numbers[i], numbers[j]] = [numbers[j], numbers[i]];
    }
    return numbers.slice(0, many);
  }

  const spoken = (text) => text.toLowerCase().match(/[\p{L}\p{N}’'-]+/gu) || [];
  const same = (a, b) => a.length === b.length && a.every((word, i) => word === b[i]);

  class Game {
    constructor(root, data, name) {
      this.rounds = data.rounds;
      this.score = make("p", { class: "game-score" });
      this.sentence = make("p", { class: "game-sentence" });
      this.guess = make("input", { type: "text", autocomplete: "off", autocapitalize: "off", spellcheck: "false" });
      this.field = labeled("", this.guess);
      this.form = make("form", { onsubmit: (event) => { event.preventDefault(); this.answer(); } },
        this.field, make("button", { class: "try-go" }, "Guess"));
      this.status = make("p", { role: "status", class: "game-says" });
      this.result = make("div", { class: "try-result" });
      this.read = make("button", { type: "button", class: "try-go", onclick: () => this.reads() }, "Let the two words read the sentence");
      this.next = make("button", { type: "button", class: "try-go", onclick: () => this.goOn() });
      this.more = make("div", { class: "game-buttons" }, this.read, this.next);
      this.card = make("div", { class: "game-card" });
      root.classList.add("game");
      root.append(this.score, this.sentence, this.form, this.status, this.result, this.more, this.card);
      this.address = link(root, name, () => ({ seed: this.seed }), ({ seed }) => this.start(Number(seed) >>> 0));
      if (this.seed === undefined) this.start(Math.floor(Math.random() * 10000));
    }

    start(seed) {
      [this.seed, this.at, this.won] = [seed, -1, []];
      this.drawn = drawn(seed, this.rounds.length, ROUNDS).map((i) => this.rounds[i]);
      this.card.replaceChildren();
      this.step();
    }

    goOn() {
      if (this.at + 1 < ROUNDS) this.step();
      else this.start(Math.floor(Math.random() * 10000));
      this.guess.focus();
    }

    step() {
      this.at++;
      const one = (this.round = this.drawn[this.at]), [first, last] = one.masked;
      this.gold = one.words.slice(first, last + 1);
      this.form.hidden = false;
      this.more.hidden = true;
      this.result.replaceChildren();
      this.guess.value = "";
      this.field.firstChild.textContent = this.gold.length > 1 ? `Which ${this.gold.length} words are missing?` : "Which word is missing?";
      this.light(false, false);
      this.tally();
      this.status.textContent = `Round ${this.at + 1}: ${one.words[first - 1]}, ${this.gold.length} masked, ${one.words[last + 1]}.`;
    }

    /** The sentence; dark: all but the neighbors and the masked words, unless the two words have read it. */
    light(whole, open) {
      const { text, words, masked: [first, last] } = this.round;
      let cursor = 0;
      const parts = words.flatMap((word, i) => {
        const start = text.indexOf(word, cursor), gap = text.slice(cursor, start);
        cursor = start + word.length;
        const masked = i >= first && i <= last, neighbor = i === first - 1 || i === last + 1;
        const shown = masked ? make("span", { class: "mask" }, open ? word : "[MASK]")
          : neighbor ? make("b", { class: "try-boundary" }, word)
          : whole ? word : make("span", { class: "game-dark", "aria-hidden": "true", style: `--long:${word.length}` });
        return [gap, shown];
      });
      this.sentence.replaceChildren(...parts);
    }

    hit(view, head) {
      return same(this.round[view][head].map((row) => row[0][0]), this.gold);
    }

    answer() {
      const guess = this.guess.value.trim();
      const won = { you: same(spoken(guess), this.gold.map((word) => word.toLowerCase())), sbo: this.hit("near", "sbo"), mlm: this.hit("near", "mlm"),
        after: { sbo: this.hit("whole", "sbo"), mlm: this.hit("whole", "mlm") } };
      this.won.push(won);
      this.form.hidden = true;
      this.more.hidden = this.read.hidden = false;
      this.next.textContent = this.at + 1 < ROUNDS ? "Next round" : "Ten other rounds";
      this.light(false, true);
      this.show("near", guess);
      this.tally();
      const names = Object.keys(NAMES).filter((name) => won[name]).map((name) => NAMES[name]);
      this.status.textContent = `The answer: ${this.gold.join(" ")}. Right: ${names.join(", ") || "nobody"}.`;
      if (this.at + 1 === ROUNDS) this.end();
      this.next.focus();
    }

    /** Now the encoder gets the whole sentence, so the states of the two neighbors have read it. */
    reads() {
      this.read.hidden = true;
      this.light(true, true);
      this.show("whole", this.guess.value.trim());
      const { sbo, mlm } = this.won[this.at].after;
      this.status.textContent = `With the whole sentence: SBO head ${sbo ? "right" : "wrong"}, MLM head ${mlm ? "right" : "wrong"}.`;
      this.next.focus();
    }

    show(view, guess) {
      const heads = ["sbo", "mlm"];
      const rows = this.gold.map((word, i) => make("tr", {}, make("th", { scope: "row" }, word, make("small", {}, ` p${i + 1}`)),
        ...heads.map((head) => make("td", {}, TryIt.guesses(this.round[view][head][i].map(([token, probability]) => ({ token, probability })), word)))));
      const seen = view === "near" ? "The encoder got only the two words" : "The encoder got the whole sentence";
      this.result.replaceChildren(
        make("p", { class: "game-you" }, "Your guess: ", make("bdi", {}, guess || "none"), this.won[this.at].you ? " ✓" : ""),
        make("table", { class: "try-table" }, make("caption", {}, `${seen}. Predictions with their probabilities; ✓ as in the text`),
          make("thead", {}, make("tr", {}, ...["masked", ...heads.map((head) => NAMES[head])].map((name) => make("th", { scope: "col" }, name)))),
          make("tbody", {}, ...rows)),
        make("p", { class: "try-legend" }, `From “${this.round.title}”.`));
    }

    points(name) {
      return this.won.filter((won) => won[name]).length;
    }

    tally() {
      this.score.textContent = `Round ${this.at + 1} of ${ROUNDS} · you ${this.points("you")} · SBO ${this.points("sbo")} · MLM ${this.points("mlm")}`;
    }

    told() {
      const after = (head) => this.won.filter((won) => won.after[head]).length;
      return [`Beat the boundary: you ${this.points("you")}, SBO ${this.points("sbo")}, MLM ${this.points("mlm")} of ${ROUNDS}`,
        ...Object.keys(NAMES).map((name) => this.won.map((won) => (won[name] ? "🟦" : "⬜")).join("") + ` ${NAMES[name]}`),
        `With the whole sentence: SBO ${after("sbo")}, MLM ${after("mlm")}`];
    }

    end() {
      const lines = this.told(), whole = () => [...this.told(), this.address()].join("\n");
      this.card.replaceChildren(make("pre", {}, lines.join("\n")), copier("Copy the card", whole, "The card is copied."),
        make("button", { type: "button", class: "try-go", onclick: () => this.picture() }, "Save it as a picture"));
      this.status.textContent += ` Final score: you ${this.points("you")}, SBO ${this.points("sbo")}, MLM ${this.points("mlm")}.`;
    }

    /** The card as a picture of 1200 × 630, for a post. */
    picture() {
      const canvas = make("canvas", { width: 1200, height: 630 }), pen = canvas.getContext("2d"), [title, , , , after] = this.told();
      const write = (text, x, y, size, weight = "") => {
        pen.font = `${weight} ${size}px system-ui, sans-serif`;
        pen.fillText(text, x, y, 1080);
      };
      [pen.fillStyle] = ["#fff"];
      pen.fillRect(0, 0, 1200, 630);
      pen.fillStyle = "#1b2733";
      write(title, 60, 110, 48, "bold");
      Object.keys(NAMES).forEach((name, row) => {
        const y = 190 + 100 * row;
        pen.fillStyle = "#1b2733";
        write(NAMES[name], 60, y + 48, 36);
        this.won.forEach((won, i) => {
          pen.fillStyle = won[name] ? "rgb(31,119,180)" : "#dde3e9";
          pen.fillRect(280 + 84 * i, y, 70, 70);
        });
      });
      pen.fillStyle = "#1b2733";
      write(after, 60, 530, 34);
      write("SpanBERT, from the ground up", 60, 590, 28);
      make("a", { href: canvas.toDataURL("image/png"), download: "beat_the_boundary.png" }).click();
    }
  }

  TryIt.add("game", Game);
})();
