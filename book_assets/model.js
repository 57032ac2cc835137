/* SpanBERT in the page: WordPiece, the encoder and the heads once more, in plain JavaScript without a dependency.

   Read it beside the package: the classes have the names and the order of `wordpiece.py`, `inputs.py`, `bert.py`,
   `boundary.py` and `tasks/question_answering.py`, and the weights those of the models' `state_dict()`. The tests
   compare both number for number (`tests/test_model_js.py`). Shapes: n sequence, H hidden, A heads, V vocabulary.
   A matrix [n,H] is one Float32Array, row after row.

   A model's weights come as a script (`python -m spanbert_tutorial export web`) that registers them:

     const model = SpanBERT.open(SPANBERT_WEIGHTS["spanbert-tiny"]);
     model.tokenize(text)                           [{piece, id, word, start, end}], without [CLS] and [SEP]
     model.fill(text, [[first, last], …], {best})   hidden spans as places in tokenize(text), ends included:
         {pieces: [{piece, start, end, hidden}], places: [{index, mlm, sbo, boundary}], attention, layers, heads, n}
         mlm, sbo: [{piece, probability}], the likeliest first; sbo and boundary are null where the span touches an end
         of the text, sbo also without such a head and after a span's 15th piece; boundary: [left, right], places.
         attention: Float32Array [layers, heads, n, n] over [CLS], the pieces, [SEP]: n is two more than the pieces,
         and place i of the pieces is row and column i + 1; a row tells where its position looks.
     model.answer(question, context, {best})        on a question answering model:
         {pieces, start, end, spans: [{text, start, end, score, first, last}], nullScore, nullOdds}
         pieces: those of the context, as tokenize() has them; start, end: a score each; first, last: places in pieces.
     SpanBERT.worker(weights)                       the same three, in a thread of their own; each returns a Promise

   start and end count UTF-16 units, as `text.slice(start, end)` does. What cannot be done throws SpanBERT.InputError,
   whose message is one sentence for the reader.                                                                   */

var SpanBERT = (function everything() {
  "use strict";

  class InputError extends Error {}

  // --- wordpiece.py: words become pieces ------------------------------------------------------------------------

  const SPECIALS = /(\[PAD\]|\[UNK\]|\[CLS\]|\[SEP\]|\[MASK\])/;
  const LONGEST_WORD = 100; // characters; a longer one is [UNK]
  const SPACE = /[\t\n\r]|(?!\p{Cc})\p{White_Space}/u;
  const CHINESE = /[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u{20000}-\u{2a6df}\u{2a700}-\u{2b81f}\u{2b920}-\u{2ceaf}\u{2f800}-\u{2fa1f}]/u;
  // The tokenizers library knows an older Unicode than browsers do. Signs and controls that came later are letters.
  const LATER = /[\u061d\u0890\u0891\u08e2\u09fd\u0a76\u0c77\u0c84\u1b4e\u1b4f\u1b7d-\u1b7f\u2e43-\u2e4f\u2e52-\u2e5d\u{10d6e}\u{10ead}\u{10ed0}\u{10f55}-\u{10f59}\u{10f86}-\u{10f89}\u{110cd}\u{113d4}-\u{113d8}\u{1144b}-\u{1144f}\u{1145a}-\u{1145d}\u{11660}-\u{1166c}\u{116b9}\u{1183b}\u{11944}-\u{11946}\u{119e2}\u{11a3f}-\u{11aa2}\u{11b00}-\u{11b09}\u{11be1}\u{11c41}-\u{11c45}\u{11c70}\u{11c71}\u{11ef7}\u{11ef8}\u{11f43}-\u{11f4f}\u{11fff}\u{12ff1}\u{12ff2}\u{13430}-\u{1343f}\u{16d6d}-\u{16d6f}\u{16e97}-\u{16e9a}\u{16fe2}\u{1e5ff}\u{1e95e}\u{1e95f}]/u;
  const CONTROL = /[\p{Cc}\p{Cf}\p{Co}\ufffd]/u;
  const PUNCTUATION = /[\p{P}$+<=>^`|~\u166d\u{111c9}]/u;

  /** What a character does to the words around it. */
  function kindOf(character) {
    if (/^[\w ]$/.test(character)) return character === " " ? "space" : character === "_" ? "word" : "letter";
    if (SPACE.test(character)) return "space";
    if (LATER.test(character)) return "letter";
    if (CONTROL.test(character)) return "nothing";
    return CHINESE.test(character) || PUNCTUATION.test(character) ? "word" : "letter";
  }

  /** Words as BERT sees them, each a list of its characters with their places: [[{character, start, end}]]. */
  function splitWords(text, offset) {
    const words = [];
    let open = false, start = offset;
    for (const character of text) {
      const kind = kindOf(character), end = start + character.length;
      if (kind === "letter" && open) words[words.length - 1].push({ character, start, end });
      else if (kind === "letter" || kind === "word") words.push([{ character, start, end }]);
      if (kind !== "nothing") open = kind === "letter";
      start = end;
    }
    return words;
  }

  class WordPiece {
    constructor(pieces) {
      this.pieces = pieces;
      this.ids = new Map(pieces.map((piece, id) => [piece, id]));
      [this.unk_id, this.cls_id, this.sep_id, this.mask_id] =
        ["[UNK]", "[CLS]", "[SEP]", "[MASK]"].map((special) => this.ids.get(special));
    }

    /** Pieces of one word, longest match first from the left; [UNK] where a stretch has none. */
    splitWord(characters) {
      const found = [], n = characters.length;
      const between = (first, last) => ({ start: characters[first].start, end: characters[last].end });
      for (let start = 0, end; start < n && n <= LONGEST_WORD; start = end) {
        let id;
        for (end = n; end > start; end--) {
          const part = characters.slice(start, end).map((one) => one.character).join("");
          if ((id = this.ids.get((start ? "##" : "") + part)) !== undefined) break;
        }
        if (id === undefined) return [{ id: this.unk_id, ...between(0, n - 1) }];
        found.push({ id, ...between(start, end - 1) });
      }
      return found.length ? found : [{ id: this.unk_id, ...between(0, n - 1) }];
    }

    /** [{piece, id, word, start, end}] of a text, without [CLS] and [SEP]. */
    tokenize(text) {
      if (/[\ud800-\udfff]/u.test(text)) throw new InputError("The text holds half a character: mend its encoding.");
      const pieces = [];
      let word = 0, offset = 0;
      const add = (one) => pieces.push({ piece: this.pieces[one.id], id: one.id, word, start: one.start, end: one.end });
      for (const part of text.split(SPECIALS)) {
        if (SPECIALS.test(part)) {
          add({ id: this.ids.get(part), start: offset, end: offset + part.length });
          word++;
        } else {
          for (const characters of splitWords(part, offset)) {
            this.splitWord(characters).forEach(add);
            word++;
          }
        }
        offset += part.length;
      }
      return pieces;
    }
  }

  // --- numbers: what PyTorch does for the package ---------------------------------------------------------------

  /** rows [n,width] times the transpose of weight [out,width]: [n,out], plus bias [out]. Four rows meet four rows at a
      time, so that a number once read is used four times; what would lie behind the last row is the last row again. */
  function product(rows, weight, width, bias) {
    const n = rows.length / width, out = weight.length / width, result = new Float32Array(n * out);
    for (let o = 0; o < out; o += 4) {
      const o1 = Math.min(o + 1, out - 1), o2 = Math.min(o + 2, out - 1), o3 = Math.min(o + 3, out - 1);
      const w0 = o * width, w1 = o1 * width, w2 = o2 * width, w3 = o3 * width;
      const b0 = bias ? bias[o] : 0, b1 = bias ? bias[o1] : 0, b2 = bias ? bias[o2] : 0, b3 = bias ? bias[o3] : 0;
      for (let i = 0; i < n; i += 2) {
        const j = Math.min(i + 1, n - 1), r = i * width, s = j * width;
        let r0 = b0, r1 = b1, r2 = b2, r3 = b3, s0 = b0, s1 = b1, s2 = b2, s3 = b3;
        for (let k = 0; k < width; k++) {
          const x = rows[r + k], y = rows[s + k];
          const u = weight[w0 + k], v = weight[w1 + k], w = weight[w2 + k], z = weight[w3 + k];
          r0 += x * u; r1 += x * v; r2 += x * w; r3 += x * z;
          s0 += y * u; s1 += y * v; s2 += y * w; s3 += y * z;
        }
        const p = i * out, q = j * out;
        result[p + o] = r0; result[p + o1] = r1; result[p + o2] = r2; result[p + o3] = r3;
        result[q + o] = s0; result[q + o1] = s1; result[q + o2] = s2; result[q + o3] = s3;
      }
    }
    return result;
  }

  class Linear {
    constructor(weights, name) {
      [this.weight, this.bias] = [weights(`${name}.weight`), weights(`${name}.bias`)];
      this.width = this.weight.length / this.bias.length;
    }
    forward(rows) {
      return product(rows, this.weight, this.width, this.bias);
    }
  }

  class LayerNorm {
    constructor(weights, name, eps) {
      [this.weight, this.bias, this.eps] = [weights(`${name}.weight`), weights(`${name}.bias`), eps];
    }
    /** In place: each row gets mean 0 and variance 1, then weight and bias. */
    forward(rows) {
      const H = this.weight.length;
      for (let r = 0; r < rows.length; r += H) {
        let mean = 0, variance = 0;
        for (let k = 0; k < H; k++) mean += rows[r + k] / H;
        for (let k = 0; k < H; k++) variance += (rows[r + k] - mean) ** 2 / H;
        const scale = 1 / Math.sqrt(variance + this.eps);
        for (let k = 0; k < H; k++) rows[r + k] = (rows[r + k] - mean) * scale * this.weight[k] + this.bias[k];
      }
      return rows;
    }
  }

  /** The error function, by Abramowitz and Stegun 7.1.26: off by 1.5e-7 at most. */
  function erf(x) {
    const t = 1 / (1 + 0.3275911 * Math.abs(x));
    const series = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
    return Math.sign(x) * (1 - series * Math.exp(-x * x));
  }

  /** In place: x times the share of a normal distribution that lies below x. */
  function gelu(rows) {
    for (let k = 0; k < rows.length; k++) rows[k] *= 0.5 * (1 + erf(rows[k] * Math.SQRT1_2));
    return rows;
  }

  /** In place: each row of `width` numbers becomes shares that sum to 1. */
  function softmax(rows, width) {
    for (let r = 0; r < rows.length; r += width) {
      const row = rows.subarray(r, r + width);
      const most = row.reduce((a, b) => Math.max(a, b));
      let sum = 0;
      for (let k = 0; k < width; k++) sum += row[k] = Math.exp(row[k] - most);
      for (let k = 0; k < width; k++) row[k] /= sum;
    }
    return rows;
  }

  /** In place: first + second. */
  function add(first, second) {
    for (let k = 0; k < first.length; k++) first[k] += second[k];
    return first;
  }

  // --- inputs.py and bert.py ------------------------------------------------------------------------------------

  class Embeddings {
    constructor(weights, config) {
      const of = (name) => weights(`encoder.embeddings.${name}.weight`);
      [this.words, this.positions, this.segments] = [of("words"), of("positions"), of("segments")];
      this.layer_norm = new LayerNorm(weights, "encoder.embeddings.layer_norm", config.layer_norm_eps);
      this.H = config.hidden_size;
    }
    forward(ids, segments) {
      const H = this.H, hidden = new Float32Array(ids.length * H);
      ids.forEach((id, i) => {
        const [w, s] = [id * H, segments[i] * H];
        for (let k = 0; k < H; k++) hidden[i * H + k] = this.words[w + k] + this.segments[s + k] + this.positions[i * H + k];
      });
      return this.layer_norm.forward(hidden);
    }
  }

  class SelfAttention {
    constructor(weights, name, config) {
      [this.query, this.key, this.value, this.output] =
        ["query", "key", "value", "output"].map((one) => new Linear(weights, `${name}.${one}`));
      [this.heads, this.H] = [config.num_attention_heads, config.hidden_size];
    }

    /** The part of one head: [n,H] -> [n,H/A]. */
    split(vectors, head) {
      const size = this.H / this.heads, n = vectors.length / this.H, part = new Float32Array(n * size);
      for (let i = 0; i < n; i++) part.set(vectors.subarray(i * this.H + head * size, i * this.H + (head + 1) * size), i * size);
      return part;
    }

    /** maps: Float32Array [A,n,n], filled with the weights of the mixture. */
    forward(hidden, maps) {
      const [query, key, value] = [this.query, this.key, this.value].map((linear) => linear.forward(hidden));
      const size = this.H / this.heads, n = hidden.length / this.H, mixed = new Float32Array(hidden.length);
      for (let head = 0; head < this.heads; head++) {
        const scores = product(this.split(query, head), this.split(key, head), size);
        for (let k = 0; k < scores.length; k++) scores[k] /= Math.sqrt(size);
        maps.set(softmax(scores, n), head * n * n);
        const values = product(scores, transpose(this.split(value, head), size), n);
        for (let i = 0; i < n; i++) mixed.set(values.subarray(i * size, (i + 1) * size), i * this.H + head * size);
      }
      return this.output.forward(mixed);
    }
  }

  /** [n,width] -> [width,n] */
  function transpose(rows, width) {
    const n = rows.length / width, turned = new Float32Array(rows.length);
    for (let i = 0; i < n; i++) for (let k = 0; k < width; k++) turned[k * n + i] = rows[i * width + k];
    return turned;
  }

  class Layer {
    constructor(weights, name, config) {
      this.attention = new SelfAttention(weights, `${name}.attention`, config);
      this.attention_norm = new LayerNorm(weights, `${name}.attention_norm`, config.layer_norm_eps);
      this.expand = new Linear(weights, `${name}.expand`);
      this.contract = new Linear(weights, `${name}.contract`);
      this.feed_forward_norm = new LayerNorm(weights, `${name}.feed_forward_norm`, config.layer_norm_eps);
    }
    forward(hidden, maps) {
      hidden = this.attention_norm.forward(add(this.attention.forward(hidden, maps), hidden));
      return this.feed_forward_norm.forward(add(this.contract.forward(gelu(this.expand.forward(hidden))), hidden));
    }
  }

  class BertEncoder {
    constructor(weights, config) {
      this.config = config;
      this.embeddings = new Embeddings(weights, config);
      this.layers = Array.from({ length: config.num_hidden_layers },
        (_, number) => new Layer(weights, `encoder.layers.${number}`, config));
    }
    /** {hidden [n,H], attention [layers,A,n,n]} of one input. */
    forward(ids, segments) {
      const size = this.config.num_attention_heads * ids.length ** 2;
      const attention = new Float32Array(this.layers.length * size);
      let hidden = this.embeddings.forward(ids, segments);
      this.layers.forEach((layer, i) => {
        hidden = layer.forward(hidden, attention.subarray(i * size, (i + 1) * size));
      });
      return { hidden, attention };
    }
  }

  class MaskedLanguageModelHead {
    constructor(weights, config) {
      this.dense = new Linear(weights, "masked_language_model.dense");
      this.layer_norm = new LayerNorm(weights, "masked_language_model.layer_norm", config.layer_norm_eps);
      [this.embedding_weight, this.bias] = [weights("encoder.embeddings.words.weight"), weights("masked_language_model.bias")];
    }
    /** States [t,H] -> logits [t,V]. */
    forward(hidden) {
      const transformed = this.layer_norm.forward(gelu(this.dense.forward(hidden)));
      return product(transformed, this.embedding_weight, this.dense.width, this.bias);
    }
  }

  // --- boundary.py ----------------------------------------------------------------------------------------------

  /** Maximal runs of true, [[first, last]]: touching spans are one. */
  function spansOf(selected) {
    const spans = [];
    selected.forEach((chosen, i) => {
      if (chosen && !selected[i - 1]) spans.push([i, i]);
      if (chosen) spans[spans.length - 1][1] = i;
    });
    return spans;
  }

  class SpanBoundaryObjective {
    constructor(weights, config) {
      this.positions = weights("boundary.positions.weight");
      [this.linear1, this.linear2] = ["linear1", "linear2"].map((name) => new Linear(weights, `boundary.${name}`));
      [this.norm1, this.norm2] = ["norm1", "norm2"].map((name) => new LayerNorm(weights, `boundary.${name}`, 1e-12));
      [this.embedding_weight, this.bias] = [weights("encoder.embeddings.words.weight"), weights("boundary.bias")];
      this.H = config.hidden_size;
      this.position_dim = this.linear1.width - 2 * this.H;
      this.max_targets = this.positions.length / this.position_dim;
    }
    /** Logits [t,V] of the first t pieces of a span. left, right: the states [H] of its two neighbours outside. */
    forward(left, right, t) {
      const width = this.linear1.width, together = new Float32Array(t * width), P = this.position_dim;
      for (let i = 0; i < t; i++) {
        together.set(left, i * width);
        together.set(right, i * width + this.H);
        together.set(this.positions.subarray(i * P, (i + 1) * P), i * width + 2 * this.H);
      }
      const inner = this.norm1.forward(gelu(this.linear1.forward(together)));
      const vectors = this.norm2.forward(gelu(this.linear2.forward(inner)));
      return product(vectors, this.embedding_weight, this.H, this.bias);
    }
  }

  // --- pretraining.py: fill_masks -------------------------------------------------------------------------------

  const MOST_PIECES = 128; // of a text to fill

  class PretrainingModel {
    constructor(weights, config, wordpiece) {
      this.wordpiece = wordpiece;
      this.encoder = new BertEncoder(weights, config);
      this.masked_language_model = new MaskedLanguageModelHead(weights, config);
      this.boundary = weights.has("boundary.bias") ? new SpanBoundaryObjective(weights, config) : null;
      this.longest = Math.min(MOST_PIECES, config.max_position_embeddings - 2);
    }

    tokenize(text) {
      return this.wordpiece.tokenize(text);
    }

    fill(text, hidden, { best = 5 } = {}) {
      const { mask_id, cls_id, sep_id } = this.wordpiece, { config } = this.encoder;
      const pieces = this.tokenize(text), selected = pieces.map((one) => one.id === mask_id);
      checkLength("text", pieces.length, this.longest);
      for (const [first, last] of hidden) {
        if (!(0 <= first && first <= last && last < pieces.length)) {
          throw new InputError(`There is no span from piece ${first} to piece ${last} in this text: choose it again.`);
        }
        selected.fill(true, first, last + 1);
      }
      if (!selected.includes(true)) throw new InputError("Nothing is hidden: hide at least one word.");
      const ids = [cls_id, ...pieces.map((one, i) => (selected[i] ? mask_id : one.id)), sep_id];
      const run = this.encoder.forward(ids, ids.map(() => 0));
      return {
        pieces: pieces.map(({ piece, start, end }, i) => ({ piece, start, end, hidden: selected[i] })),
        places: spansOf(selected).flatMap((span) => this.guesses(run.hidden, span, pieces.length, best)),
        attention: run.attention, layers: config.num_hidden_layers, heads: config.num_attention_heads, n: ids.length,
      };
    }

    /** What both heads put at the places of one span. */
    guesses(hidden, [first, last], n, best) {
      const count = last - first + 1, H = this.encoder.config.hidden_size, V = this.wordpiece.pieces.length;
      const state = (place, many = 1) => hidden.subarray((place + 1) * H, (place + 1 + many) * H); // [CLS] in front
      const boundary = first > 0 && last < n - 1 ? [first - 1, last + 1] : null;
      const mlm = this.masked_language_model.forward(state(first, count));
      const targets = boundary && this.boundary ? Math.min(count, this.boundary.max_targets) : 0;
      const sbo = targets && this.boundary.forward(state(first - 1), state(last + 1), targets);
      const row = (logits, i) => this.likeliest(logits.subarray(i * V, (i + 1) * V), best);
      return Array.from({ length: count }, (_, i) => ({
        index: first + i, mlm: row(mlm, i), sbo: i < targets ? row(sbo, i) : null, boundary,
      }));
    }

    /** The `best` pieces of logits [V], with their probabilities. */
    likeliest(logits, best) {
      const shares = softmax(logits, logits.length);
      const order = Array.from(shares.keys()).sort((a, b) => shares[b] - shares[a]);
      return order.slice(0, best).map((id) => ({ piece: this.wordpiece.pieces[id], probability: shares[id] }));
    }
  }

  function checkLength(what, found, longest) {
    if (!found) throw new InputError(`The ${what} is empty: write at least one word.`);
    if (found > longest) {
      throw new InputError(`The ${what} has ${found} pieces, and this model reads at most ${longest}: shorten it.`);
    }
  }

  // --- tasks/question_answering.py and tasks/windows.py, with one window ----------------------------------------

  const MOST_QUESTION_PIECES = 64, LONGEST_ANSWER = 30;

  class QuestionAnsweringModel {
    constructor(weights, config, wordpiece) {
      this.wordpiece = wordpiece;
      this.encoder = new BertEncoder(weights, config);
      this.boundaries = new Linear(weights, "boundaries");
      this.length = config.length;
    }

    tokenize(text) {
      return this.wordpiece.tokenize(text);
    }

    answer(question, context, { best = 5 } = {}) {
      const asked = this.tokenize(question).slice(0, MOST_QUESTION_PIECES), pieces = this.tokenize(context);
      checkLength("question", asked.length, MOST_QUESTION_PIECES);
      checkLength("text", pieces.length, this.length - asked.length - 3);
      const { cls_id, sep_id } = this.wordpiece, ids = (of) => of.map((one) => one.id);
      const input = [cls_id, ...ids(asked), sep_id, ...ids(pieces), sep_id], first = asked.length + 2;
      const { hidden } = this.encoder.forward(input, input.map((_, i) => (i < first ? 0 : 1)));
      const scores = this.boundaries.forward(hidden); // [n,2]
      const start = pieces.map((_, i) => scores[2 * (first + i)]), end = pieces.map((_, i) => scores[2 * (first + i) + 1]);
      const spans = bestSpans(start, end, best).map(({ first, last, score }) => {
        const [begin, close] = [pieces[first].start, pieces[last].end];
        return { text: context.slice(begin, close), start: begin, end: close, score, first, last };
      });
      const nullScore = scores[0] + scores[1];
      return { pieces, start, end, spans, nullScore, nullOdds: nullScore - spans[0].score };
    }
  }

  /** The `best` spans of context pieces, the highest S_first + E_last first. */
  function bestSpans(start, end, best) {
    const found = [];
    for (let first = 0; first < start.length; first++) {
      for (let last = first; last < Math.min(first + LONGEST_ANSWER, end.length); last++) {
        found.push({ first, last, score: start[first] + end[last] });
      }
    }
    return found.sort((a, b) => b.score - a.score).slice(0, best);
  }

  // --- checkpoints.py: a model from its weights -----------------------------------------------------------------

  function bytes(base64) {
    const text = atob(base64), found = new Uint8Array(text.length);
    for (let k = 0; k < text.length; k++) found[k] = text.charCodeAt(k);
    return found.buffer;
  }

  /** The numbers of one tensor. 8-bit integers come with a scale for each row. */
  function read({ shape, scale, data }) {
    if (!scale) return new Float32Array(bytes(data));
    const whole = new Int8Array(bytes(data)), scales = new Float32Array(bytes(scale)), width = whole.length / shape[0];
    const numbers = new Float32Array(whole); // then each times its scale
    for (let row = 0, k = 0; row < shape[0]; row++) for (const end = k + width; k < end; k++) numbers[k] *= scales[row];
    return numbers;
  }

  function open({ config, vocabulary, kind, tensors }) {
    const opened = new Map(); // the heads use the word embeddings, too
    const weights = (name) => {
      if (!opened.has(name)) opened.set(name, read(tensors[name]));
      return opened.get(name);
    };
    weights.has = (name) => name in tensors;
    const Model = { pretraining: PretrainingModel, question_answering: QuestionAnsweringModel }[kind];
    return new Model(weights, config, new WordPiece(vocabulary));
  }

  // --- a thread of its own: the page goes on while the model computes -------------------------------------------

  /** What runs in the thread: opens the model, then answers one call after the other. */
  function serve(thread) {
    let model;
    thread.onmessage = ({ data: { number, method, given } }) => {
      try {
        if (method === "open") model = open(...given);
        thread.postMessage({ number, result: method === "open" ? true : model[method](...given) });
      } catch (error) {
        thread.postMessage({ number, message: error.message, input: error instanceof InputError });
      }
    };
  }

  /** {ready, tokenize, fill, answer, stop}: a model in a thread made from this very source, so that it also works in a
      page opened from the disk. ready: a Promise, kept once the weights are read. stop() ends the thread. */
  function worker(weights) {
    const source = new Blob([`(${everything})().serve(self)`], { type: "text/javascript" });
    const address = URL.createObjectURL(source), thread = new Worker(address), waiting = new Map();
    let number = 0;
    const call = (method, ...given) => new Promise((keep, refuse) => {
      waiting.set(++number, { keep, refuse });
      thread.postMessage({ number, method, given });
    });
    thread.onmessage = ({ data }) => {
      const { keep, refuse } = waiting.get(data.number);
      waiting.delete(data.number);
      if ("result" in data) keep(data.result);
      else refuse(data.input ? new InputError(data.message) : new Error(data.message));
    };
    const ready = call("open", weights);
    const [tokenize, fill, answer] = ["tokenize", "fill", "answer"].map((method) => (...given) => call(method, ...given));
    const stop = () => {
      thread.terminate();
      URL.revokeObjectURL(address);
    };
    return { ready, tokenize, fill, answer, stop };
  }

  return { InputError, open, worker, serve, kindOf };
})();
