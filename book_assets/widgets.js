/* What the parts of a page that can be used have in common: elements, and a link to what the reader sees.

   A link ends in `#widget=NAME&…`, with the state of one part of the page, and is restored when the page opens. A choice
   among panels and a figure that moves (`figures/explorer.py`, `figures/moving.py`) bring their own script; they get their
   link here. A part that computes (`try_it.js`, `game.js`, `figure_one.js`) calls `Widgets.link` itself. */

var Widgets = (function () {
  "use strict";

  /** An element with attributes, listeners (onclick: …) and children; a string becomes text. */
  function make(tag, given = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(given)) {
      if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
      else if (value === true) element.setAttribute(name, "");
      else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
    }
    element.append(...children);
    return element;
  }

  /** A labeled field; the label encloses it, so no id is needed. */
  const labeled = (text, field) => make("label", { class: "try-field" }, make("span", {}, text), field);

  /** Copies text; where the browser refuses, the text is shown selected, to be copied by hand. */
  async function copy(text, button, done) {
    const before = button.textContent, said = button.nextElementSibling;
    try {
      await navigator.clipboard.writeText(text);
      said.textContent = done;
    } catch {
      const field = make("input", { type: "text", readonly: true, "aria-label": "Copy this", onblur: () => field.remove() });
      field.value = text;
      button.before(field);
      field.select();
      said.textContent = "Copy the selected text.";
    }
    setTimeout(() => ([button.textContent, said.textContent] = [before, ""]), 4000);
  }

  /** A button that copies what `text()` gives, with a short line that is announced. */
  const copier = (label, text, done) => make("span", { class: "copier" },
    make("button", { type: "button", onclick: ({ target }) => copy(text(), target, done) }, label),
    make("span", { role: "status" }));

  /** The parts of a link that lead to this part of the page; null for another part. */
  function asked(name) {
    const given = new URLSearchParams(location.hash.slice(1));
    return given.get("widget") === name ? Object.fromEntries(given) : null;
  }

  /** Gives a part its button *Copy link*, and the state of a link that leads to it. state: () → {key: text};
      restore: called with such an object, whose values come from anybody. Returns a function that gives the link. */
  function link(root, name, state, restore) {
    const address = () => `${location.href.replace(/#.*/, "")}#${new URLSearchParams({ widget: name, ...state() })}`;
    root.append(copier("Copy link", () => {
      const whole = address();
      history.replaceState(null, "", whole);
      return whole;
    }, "The link is copied."));
    const follow = () => {
      const given = asked(name);
      if (!given) return;
      restore(given);
      root.scrollIntoView({ block: "center" });
    };
    addEventListener("hashchange", follow);
    follow();
    return address;
  }

  /** Goes to one of several options, if there is such a one. */
  function choose(select, index) {
    if (!(index >= 0 && index < select.options.length)) return;
    select.selectedIndex = index;
    select.dispatchEvent(new Event("change"));
  }

  addEventListener("DOMContentLoaded", () => {
    document.querySelectorAll("[data-explorer]").forEach((root, i) => {
      const selects = [...root.querySelectorAll("select")];
      link(root, `panels${i + 1}`, () => ({ at: selects.map((one) => one.selectedIndex).join("-") }),
        ({ at = "" }) => at.split("-").forEach((index, k) => selects[k] && choose(selects[k], Number(index))));
    });
    document.querySelectorAll("[data-moving]").forEach((root, i) => {
      if (!root.frame) return;
      link(root, `figure${i + 1}`, () => ({ frame: root.frame.now() }), ({ frame }) => root.frame.show(Number(frame)));
    });
  });

  return { make, labeled, copier, link };
})();
