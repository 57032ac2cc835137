/* Figure 1 of the SpanBERT paper, alive: choose a span, and see what each head reads and predicts. The predictions of every
   span come with the page, made by `spanbert_tutorial/figures/try_it.py`. */

(function () {
  "use strict";

  const { make, link } = Widgets;
  const SVG = "http://www.w3.org/2000/svg";
  const low = (number) => String(number).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);
  const ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];

  class FigureOne {
    constructor(root, data, name) {
      Object.assign(this, { root, ...data });
      this.words = new TryIt.Words(() => this.changed(), true);
      this.words.masked = new Set(TryIt.range(...data.span));
      this.place = data.place;
      this.chosen = make("div", { class: "one-choice", role: "group", "aria-label": "The word to predict",
        onclick: ({ target }) => this.choose([...this.chosen.querySelectorAll("button")].indexOf(target.closest("button"))) });
      this.cards = { sbo: this.card("one-sbo"), mlm: this.card("one-mlm") };
      this.loss = make("p", { class: "one-loss" });
      this.status = make("p", { role: "status", class: "try-heard" });
      this.arrows = document.createElementNS(SVG, "svg");
      this.arrows.setAttribute("aria-hidden", "true");
      root.classList.add("one");
      root.append(this.arrows, make("p", { class: "try-legend" }, "Drag over words to mask them, or press the first and the last one."),
        this.words.element, this.chosen, make("div", { class: "one-cards" }, this.cards.sbo, this.cards.mlm), this.loss, this.status);
      this.words.show(data.words.map((tokens, first) => ({ tokens, first })));
      this.draw();
      new ResizeObserver(() => this.connect()).observe(root);
      link(root, name, () => ({ m: [...this.words.masked].map((i) => i + 1).join(), at: this.place + 1 }), ({ m = "", at }) => {
        const asked = m.split(",").map((i) => Number(i) - 1).filter((i) => i > 0 && i < data.words.length - 1);
        if (!asked.length) return;
        this.words.set(Math.min(...asked), Math.max(...asked), true);
        this.choose(Number(at) - 1);
      });
    }

    card(kind) {
      return make("div", { class: `one-card ${kind}` });
    }

    choose(place) {
      if (!(place >= 0 && place < this.words.masked.size)) return;
      this.place = place;
      this.draw();
      this.chosen.querySelectorAll("button")[place].focus({ preventScroll: true });
    }

    changed() {
      this.place = this.words.masked.size >> 1;
      this.draw();
    }

    draw() {
      const masked = [...this.words.masked].sort((a, b) => a - b), [first, last] = [masked[0], masked.at(-1)], own = masked[this.place];
      const word = (i) => this.words.words[i].tokens.join("").replaceAll("##", ""), right = word(own);
      this.words.boundary = new Set([first - 1, last + 1]);
      this.words.mark();
      const [left, next, mine, p] = [first, last + 2, own + 1, this.place + 1].map(low); // the paper counts from 1
      this.chosen.replaceChildren("Predict: ", ...masked.map((i, k) => make("button", { type: "button", "aria-pressed": String(k === this.place) }, word(i))));
      const fill = (card, title, reads, list) => card.replaceChildren(make("b", {}, title), make("p", {}, ...reads),
        TryIt.guesses(list.map(([token, probability]) => ({ token, probability })), right));
      const rows = this.predictions[`${first}-${last}`];
      fill(this.cards.sbo, "SBO head", [`reads x${left} (${word(first - 1)}), x${next} (${word(last + 1)}) and p${p}: ${ORDINALS[this.place]} in the span`], rows.sbo[this.place]);
      fill(this.cards.mlm, "MLM head", [`reads x${mine}, the state of the masked word itself`], rows.mlm[this.place]);
      this.loss.textContent = `loss = −ln P(${right} | x${mine}) − ln P(${right} | x${left}, x${next}, p${p})`;
      this.status.textContent = `Masked: ${masked.map(word).join(" ")}. For ${right}, the SBO head predicts ${rows.sbo[this.place][0][0]}, the MLM head ${rows.mlm[this.place][0][0]}.`;
      this.fed = [[first - 1, "sbo", 0.3], [last + 1, "sbo", 0.7], [own, "mlm", 0.5]];
      this.connect();
    }

    /** Arrows from the words to the heads that read their states, behind both. */
    connect() {
      const origin = this.root.getBoundingClientRect();
      const paths = this.fed.map(([i, head, share]) => {
        const from = this.words.buttons[i].getBoundingClientRect(), to = this.cards[head].getBoundingClientRect();
        const [x, y] = [from.left + from.width / 2 - origin.left, from.bottom - origin.top];
        const [u, v] = [to.left + to.width * share - origin.left, to.top - origin.top], path = document.createElementNS(SVG, "path");
        path.setAttribute("d", `M${x} ${y}C${x} ${(y + v) / 2} ${u} ${(y + v) / 2} ${u} ${v - 9}m-5 0l5 8l5 -8z`);
        path.setAttribute("class", `one-${head}`);
        return path;
      });
      this.arrows.replaceChildren(...paths);
    }
  }

  TryIt.add("figure-one", FigureOne);
})();
