/* The search page. PAGES (search_texts.js) is the whole book: [address, part, title, keywords, sections], a section
   [anchor, heading, text, code]. Chapters come first, the API reference stands folded below them. */
"use strict";
(() => {
  const STOP = new Set(("a an and are as at be but by can could do does for from get has have how i if in into is it its me my no of on or so " +
    "that the their there this to use using was we what when where which who why will with you your").split(" "));
  // What people write → what the book calls it.
  const SYNONYMS = {
    "own data": "your own data", "my data": "your own data", "custom": "your own data", "oom": "out of memory", "cuda out": "memory",
    "vs": "difference compare", "versus": "difference compare", "better": "compare difference",
    "gpu": "card", "ner": "tagging entities", "named entity": "tagging entities label each word", "coref": "coreference", "qa": "question answering", "sbo": "span boundary objective",
    "mlm": "masking", "nsp": "next sentence prediction sentence pairs", "huggingface": "transformers", "install": "setup", "checkpoint": "model",
    "error": "help", "tutorial": "course", "kbp": "tacred relation", "download": "weights shipped", "tokenizer": "wordpiece",
    "cite": "references", "license": "licence", "attention": "encoder"};
  const OF_PART = {"Evidence": 0.65, "Reference": 0.6, "Part IV: Relatives": 0.85};
  const FIELDS = [["title", 5, 0.3], ["keywords", 3, 0.5], ["headings", 1.6, 1], ["text", 1, 3], ["code", 0.4, 3]]; // name, weight, half-way

  const stem = (word) => word.length > 3 ? word.replace(/(ies|y)$/, "i").replace(/(ings?|ed|es|s|e)$/, "") : word;
  const wordsOf = (text) => text.toLowerCase().normalize("NFKC").replace(/(?<=\p{L})[-‑](?=\p{L})/gu, "")
    .match(/[\p{L}\p{N}_]+/gu)?.map(stem) ?? [];
  const count = (words) => {
    const counts = new Map();
    for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
    return counts;
  };
  const measure = (fields) => Object.fromEntries(Object.entries(fields).map(([name, text]) => {
    const words = wordsOf(text);
    return [name, {counts: count(words), size: words.length, line: ` ${words.join(" ")} `}];
  }));

  const pages = PAGES.map(([address, part, title, keywords, sections]) => ({
    address, part, title, api: address.includes("/api"),
    sections: sections.map(([anchor, heading, text, code]) => ({anchor, heading, text: text || code, fields: measure({headings: heading, text, code})})),
    fields: measure({title, keywords, headings: sections.slice(1).map((one) => one[1]).join(" . "),
      text: sections.map((one) => one[2]).join(" "), code: sections.map((one) => one[3]).join(" ")})}));
  const AVERAGE = Object.fromEntries(FIELDS.map(([name]) =>
    [name, pages.reduce((sum, page) => sum + page.fields[name].size, 0) / pages.length || 1]));
  const rarity = (term) => {
    const having = pages.filter((page) => FIELDS.some(([name]) => page.fields[name].counts.has(term))).length;
    return Math.log(1 + (pages.length - having + 0.5) / (having + 0.5));
  };

  /* The words of a question, each with its weight; words that only a synonym brings weigh less. */
  const termsOf = (question) => {
    const asked = question.toLowerCase().replace(/(?<=\p{L})[-‑](?=\p{L})/gu, "");
    const own = wordsOf(asked.match(/[\p{L}\p{N}_]+/gu)?.filter((word) => !STOP.has(word)).join(" ") ?? "");
    const more = Object.entries(SYNONYMS).filter(([said]) => ` ${asked} `.match(new RegExp(`[^\\p{L}]${said}[^\\p{L}]`, "u")))
      .flatMap(([, called]) => wordsOf(called)).filter((word) => !own.includes(word) && !STOP.has(word));
    const known = own.map((word) => complete(word));
    return [...new Set(known)].map((term) => ({term, weight: 1})).concat([...new Set(more)].map((term) => ({term, weight: 0.5})))
      .map((one) => ({...one, weight: one.weight * rarity(one.term)}));
  };
  /* A word that stands nowhere is perhaps the beginning of one that does. */
  const vocabulary = count(pages.flatMap((page) => FIELDS.flatMap(([name]) => [...page.fields[name].counts.keys()])));
  const complete = (word) => {
    if (vocabulary.has(word) || word.length < 3) return word;
    return [...vocabulary].filter(([other]) => other.startsWith(word)).sort((a, b) => b[1] - a[1])[0]?.[0] ?? word;
  };

  const scoreOf = (fields, terms) => {
    let score = 0, found = 0, all = 0;
    const line = terms.filter((one) => one.weight).map((one) => one.term);
    for (const {term, weight} of terms) {
      let here = 0;
      for (const [name, strength, half] of FIELDS) {
        const field = fields[name], times = field?.counts.get(term) ?? 0;
        if (!times) continue;
        const long = field.size / AVERAGE[name];
        here += strength * times / (times + half * (0.4 + 0.6 * long));
      }
      score += weight * here;
      all += weight;
      if (here) found += weight;
    }
    for (let place = 0; place + 1 < line.length; place++) { // neighbors in the question, neighbors in a heading
      const pair = ` ${line[place]} ${line[place + 1]} `;
      for (const [name, more] of [["title", 8], ["keywords", 6], ["headings", 3]]) if (fields[name]?.line.includes(pair)) score += more;
    }
    return all ? score * (found / all) ** 2 : 0;
  };

  const answer = (question) => {
    const terms = termsOf(question);
    return pages.map((page) => {
      const best = page.sections.map((section) => [scoreOf(section.fields, terms), section]).sort((a, b) => b[0] - a[0])[0];
      return {page, terms, score: (scoreOf(page.fields, terms) + 0.5 * (best?.[0] ?? 0)) * (OF_PART[page.part] ?? 1), section: best?.[1]};
    }).filter((one) => one.score > 0).sort((a, b) => b.score - a.score);
  };

  const make = (tag, text = "", ...children) => {
    const element = document.createElement(tag);
    element.append(text, ...children);
    return element;
  };
  /* Some words around the first word that was asked for, which is marked. */
  const excerpt = (text, terms) => {
    const line = make("p"), wanted = new Set(terms.map((one) => one.term));
    const words = [...text.matchAll(/[\p{L}\p{N}_‑-]+/gu)].map((one) => [one.index, one[0], wordsOf(one[0]).some((word) => wanted.has(word))]);
    const first = words.findIndex((one) => one[2]);
    const from = words[Math.max(0, first - 8)]?.[0] ?? 0, until = words[Math.max(first, 0) + 22]?.[0] ?? text.length;
    let place = from;
    if (from) line.append("… ");
    for (const [start, word, hit] of words) {
      if (!hit || start < from || start >= until) continue;
      line.append(text.slice(place, start), make("mark", word));
      place = start + word.length;
    }
    line.append(text.slice(place, until), until < text.length ? " …" : "");
    return line;
  };
  const entry = ({page, section, terms}) => {
    const inside = section?.anchor && section !== page.sections[0];
    const link = make("a", page.title);
    link.href = page.address + (inside ? `#${section.anchor}` : "");
    const item = make("li", "", link);
    if (inside && section.heading !== page.title) item.append(` › ${section.heading}`);
    if (page.part) item.append(make("small", ` ${page.part}`));
    item.append(excerpt(section?.text ?? "", terms));
    return item;
  };

  document.addEventListener("DOMContentLoaded", () => {
    const field = document.querySelector(".bd-article input[name=q], main input[name=q]"), place = document.getElementById("search-results");
    const said = make("p");
    said.setAttribute("role", "status");
    place.before(said);
    const show = () => {
      const question = field.value.trim(), found = question ? answer(question) : [];
      const main = found.filter((one) => !one.page.api).slice(0, 20), api = found.filter((one) => one.page.api).slice(0, 20);
      said.textContent = !question ? "" : found.length ? `${main.length} page${main.length === 1 ? "" : "s"}, the best first` :
        "Nothing found. Try one of the book's words, or the glossary.";
      place.replaceChildren();
      if (main.length) place.append(make("ol", "", ...main.map(entry)));
      if (!api.length) return;
      const more = make("details", "", make("summary", `API reference: ${api.length} page${api.length === 1 ? "" : "s"}`), make("ol", "", ...api.map(entry)));
      more.open = !main.length;
      place.append(more);
    };
    field.value = new URLSearchParams(location.search).get("q") ?? "";
    field.addEventListener("input", show);
    show();
  });
})();
