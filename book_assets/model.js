/* SpanBERT in the page: WordPiece, the encoder and the heads once more, in plain JavaScript without a dependency.

   Read it beside the package: the classes have the names and the order of `wordpiece.py`, `inputs.py`, `bert.py`,
   `boundary.py` and `tasks/question_answering.py`, and the weights those of the models' `state_dict()`. The tests
   compare both number for number (`tests/test_model_js.py`). Shapes: n sequence, H hidden, A heads, V vocabulary.
   A matrix [n,H] is one Float32Array, row after row.

   A model's weights come as a script (`python -m spanbert_tutorial export web`) that registers them:

     const model = SpanBERT.open(SPANBERT_WEIGHTS["spanbert-tiny"]);
     model.tokenize(text)                           [{token, id, word, start, end}], without [CLS] and [SEP]
     model.fill(text, [[first, last], …], {best})   masked spans as positions in tokenize(text), ends included:
         {tokens: [{token, start, end, masked}], positions: [{index, mlm, sbo, boundary}], attention, layers, heads, n}
         mlm, sbo: [{token, probability}], most probable first; sbo and boundary are null where the span touches an end
         of the text, sbo also without such a head and after a span's 15th token; boundary: [left, right], positions.
         attention: Float32Array [layers, heads, n, n] over [CLS], the tokens, [SEP]: n is two more than the tokens,
         and position i of the tokens is row and column i + 1; row i has the weights with which its position looks.
     model.answer(question, context, {best})        on a question answering model:
         {tokens, start, end, spans: [{text, start, end, score, first, last}], nullScore, nullOdds}
         tokens: those of the context, as tokenize() has them; start, end: a score each; first, last: positions in tokens.
     SpanBERT.worker(weights)                       the same three, in a thread of their own; each returns a Promise

   start and end count UTF-16 units, as `text.slice(start, end)` does. What cannot be done throws SpanBERT.InputError,
   whose message is one sentence for the reader.                                                                   */

var SpanBERT = (function everything() {
  "use strict";

  class InputError extends Error {}

  // --- wordpiece.py: words become tokens ------------------------------------------------------------------------

  const SPECIALS = /(\[PAD\]|\[UNK\]|\[CLS\]|\[SEP\]|\[MASK\])/;
  const LONGEST_WORD = 100; // characters; a longer one is [UNK]
  const oneOf = (codes) => new RegExp(`[${codes.replace(/[0-9a-f]+/g, "\\u{$&}").replace(/ /g, "")}]`, "u");
  const SPACE = /[\t\n\r]|(?!\p{Cc})\p{White_Space}/u;
  const CHINESE = oneOf("3400-4dbf 4e00-9fff f900-faff 20000-2a6df 2a700-2b81f 2b920-2ceaf 2f800-2fa1f");
  // The tokenizers library knows an older Unicode than browsers do. Signs and controls that came later are letters.
  const LATER = oneOf(
    "61d 890 891 8e2 9fd a76 c77 c84 1b4e 1b4f 1b7d-1b7f 2e43-2e4f 2e52-2e5d 10d6e 10ead 10ed0 10f55-10f59 " +
    "10f86-10f89 110cd 113d4-113d8 1144b-1144f 1145a-1145d 11660-1166c 116b9 1183b 11944-11946 119e2 " +
    "11a3f-11aa2 11b00-11b09 11be1 11c41-11c45 11c70 11c71 11ef7 11ef8 11f43-11f4f 11fff 12ff1 12ff2 " +
    "13430-1343f 16d6d-16d6f 16e97-16e9a 16fe2 1e5ff 1e95e 1e95f",
  );
  const CONTROL = /[\p{Cc}\p{Cf}\p{Co}\ufffd]/u;
  const PUNCTUATION = /[\p{P}$+<=>^`|~\u166d\u{111c9}]/u;

  /** What a character does: "letter" goes on with a word, "word" is one, "space" ends one, "nothing" is left out. */
  function kindOf(character) {
    if (SPACE.test(character)) return "space";
    if (LATER.test(character)) return "letter";
    if (CONTROL.test(character)) return "nothing";
    return CHINESE.test(character) || PUNCTUATION.test(character) ? "word" : "letter";
  }

  /** Words as BERT sees them, each a list of its characters with their positions: [[{character, start, end}]]. */
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
    constructor(tokens) {
      this.tokens = tokens;
      this.ids = new Map(tokens.map((token, id) => [token, id]));
      [this.unk_id, this.cls_id, this.sep_id, this.mask_id] =
        ["[UNK]", "[CLS]", "[SEP]", "[MASK]"].map((special) => this.ids.get(special));
    }

    /** Pieces of one word, longest match first from the left; [UNK] where a stretch has none. */
    splitWord(characters) {
      const word = characters.map((one) => one.character).join(""), n = characters.length, found = [];
      const at = [0]; // where each character begins in `word`
      for (const { character } of characters) at.push(at[at.length - 1] + character.length);
      const token = (id, first, end) => ({ id, start: characters[first].start, end: characters[end - 1].end });
      for (let start = 0, end; start < n && n <= LONGEST_WORD; start = end) {
        const idUntil = (stop) => this.ids.get((start ? "##" : "") + word.slice(at[start], at[stop]));
        for (end = n; end > start && idUntil(end) === undefined; ) end--;
        if (end === start) return [token(this.unk_id, 0, n)];
        found.push(token(idUntil(end), start, end));
      }
      return found.length ? found : [token(this.unk_id, 0, n)];
    }

    /** [{token, id, word, start, end}] of a text, without [CLS] and [SEP]. */
    tokenize(text) {
      if (/[\ud800-\udfff]/u.test(text)) throw new InputError("The text holds half a character: mend its encoding.");
      const tokens = [];
      let word = 0, offset = 0;
      for (const part of text.split(SPECIALS)) {
        const special = [{ id: this.ids.get(part), start: offset, end: offset + part.length }];
        const words = SPECIALS.test(part) ? [special] : splitWords(part, offset).map((one) => this.splitWord(one));
        for (const found of words) {
          for (const { id, start, end } of found) tokens.push({ token: this.tokens[id], id, word, start, end });
          word++;
        }
        offset += part.length;
      }
      return tokens;
    }
  }

  // --- numbers: what PyTorch does for the package ---------------------------------------------------------------

  /** rows [n,width] times the transpose of weight [out,width], plus bias [out]: [n,out]. Two rows meet four of `weight`
      at a time, so that a number once read is used several times; the last row also stands in for rows past the end. */
  function product(rows, weight, width, bias = new Float32Array(weight.length / width)) {
    const n = rows.length / width, out = bias.length, result = new Float32Array(n * out);
    for (let o = 0; o < out; o += 4) {
      const o1 = Math.min(o + 1, out - 1), o2 = Math.min(o + 2, out - 1), o3 = Math.min(o + 3, out - 1);
      const w0 = o * width, w1 = o1 * width, w2 = o2 * width, w3 = o3 * width; // where the four begin
      for (let i = 0; i < n; i += 2) {
        const j = Math.min(i + 1, n - 1), r = i * width, s = j * width;
        let r0 = bias[o], r1 = bias[o1], r2 = bias[o2], r3 = bias[o3]; // sums in double precision
        let s0 = r0, s1 = r1, s2 = r2, s3 = r3;
        for (let k = 0; k < width; k++) {
          const x = rows[r + k], y = rows[s + k];
          const a = weight[w0 + k], b = weight[w1 + k], c = weight[w2 + k], d = weight[w3 + k];
          r0 += x * a; r1 += x * b; r2 += x * c; r3 += x * d;
          s0 += y * a; s1 += y * b; s2 += y * c; s3 += y * d;
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
        const deviation = Math.sqrt(variance + this.eps);
        for (let k = 0; k < H; k++) rows[r + k] = ((rows[r + k] - mean) / deviation) * this.weight[k] + this.bias[k];
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
      let most = -Infinity, sum = 0;
      for (let k = 0; k < width; k++) most = Math.max(most, row[k]);
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

  /** [n,width] -> [width,n] */
  function transpose(rows, width) {
    const n = rows.length / width, turned = new Float32Array(rows.length);
    for (let i = 0; i < n; i++) for (let k = 0; k < width; k++) turned[k * n + i] = rows[i * width + k];
    return turned;
  }

  // --- inputs.py and bert.py ------------------------------------------------------------------------------------

  class Embeddings {
    constructor(weights, config) {
      const of = (name) => weights(`encoder.embeddings.${name}.weight`);
      [this.words, this.positions, this.segments] = ["word", "position", "token_type"].map((kind) => of(`${kind}_embeddings`));
      this.layer_norm = new LayerNorm(weights, "encoder.embeddings.layer_norm", config.layer_norm_eps);
      this.H = config.hidden_size;
    }
    forward(ids, segments) {
      const H = this.H, hidden = new Float32Array(ids.length * H);
      ids.forEach((id, i) => {
        const [w, s] = [id * H, segments[i] * H];
        for (let k = 0; k < H; k++) hidden[i * H + k] = this.words[w + k] + this.segments[s + k];
      });
      return this.layer_norm.forward(add(hidden, this.positions)); // row i of `positions` belongs to position i
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
      for (let i = 0, from = head * size; i < n; i++, from += this.H) {
        part.set(vectors.subarray(from, from + size), i * size);
      }
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
      this.embedding_weight = weights("encoder.embeddings.word_embeddings.weight");
      this.bias = weights("masked_language_model.bias");
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
      [this.embedding_weight, this.bias] = [weights("encoder.embeddings.word_embeddings.weight"), weights("boundary.bias")];
      this.H = config.hidden_size;
      this.position_dim = this.linear1.width - 2 * this.H;
      this.max_targets = this.positions.length / this.position_dim;
    }
    /** Logits [t,V] of the first t tokens of a span. left, right: the states [H] of its two neighbors outside. */
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

    fill(text, spans, { best = 5 } = {}) {
      const { mask_id, cls_id, sep_id } = this.wordpiece, { config } = this.encoder;
      const tokens = this.tokenize(text), selected = tokens.map((one) => one.id === mask_id);
      checkLength("text", tokens.length, this.longest);
      for (const [first, last] of spans) {
        if (!(0 <= first && first <= last && last < tokens.length)) {
          throw new InputError(`There is no span from token ${first} to token ${last} in this text: choose it again.`);
        }
        selected.fill(true, first, last + 1);
      }
      if (!selected.includes(true)) throw new InputError("Nothing is masked: mask at least one word.");
      const ids = [cls_id, ...tokens.map((one, i) => (selected[i] ? mask_id : one.id)), sep_id];
      const run = this.encoder.forward(ids, ids.map(() => 0));
      return {
        tokens: tokens.map(({ token, start, end }, i) => ({ token, start, end, masked: selected[i] })),
        positions: spansOf(selected).flatMap((span) => this.guesses(run.hidden, span, tokens.length, best)),
        attention: run.attention, layers: config.num_hidden_layers, heads: config.num_attention_heads, n: ids.length,
      };
    }

    /** What both heads put at the positions of one span. */
    guesses(hidden, [first, last], n, best) {
      const count = last - first + 1, { hidden_size: H, vocab_size: V } = this.encoder.config;
      const state = (position, many = 1) => hidden.subarray((position + 1) * H, (position + 1 + many) * H); // [CLS] in front
      const boundary = first > 0 && last < n - 1 ? [first - 1, last + 1] : null;
      const mlm = this.masked_language_model.forward(state(first, count));
      const targets = boundary && this.boundary ? Math.min(count, this.boundary.max_targets) : 0;
      const sbo = targets && this.boundary.forward(state(first - 1), state(last + 1), targets);
      const row = (logits, i) => this.likeliest(logits.subarray(i * V, (i + 1) * V), best);
      return Array.from({ length: count }, (_, i) => ({
        index: first + i, mlm: row(mlm, i), sbo: i < targets ? row(sbo, i) : null, boundary,
      }));
    }

    /** The `best` tokens of logits [V], with their probabilities. */
    likeliest(logits, best) {
      const shares = softmax(logits, logits.length), found = []; // ids
      for (let id = 0; id < shares.length; id++) {
        if (found.length === best && shares[id] <= shares[found[best - 1]]) continue;
        found.push(id);
        found.sort((a, b) => shares[b] - shares[a]).splice(best);
      }
      return found.map((id) => ({ token: this.wordpiece.tokens[id], probability: shares[id] }));
    }
  }

  function checkLength(what, found, longest) {
    if (!found) throw new InputError(`The ${what} is empty: write at least one word.`);
    if (found > longest) {
      throw new InputError(`The ${what} has ${found} tokens, and this model reads at most ${longest}: shorten it.`);
    }
  }

  // --- tasks/question_answering.py and tasks/windows.py, with one window ----------------------------------------

  const MOST_QUESTION_TOKENS = 64, LONGEST_ANSWER = 30;

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
      const asked = this.tokenize(question).slice(0, MOST_QUESTION_TOKENS), tokens = this.tokenize(context);
      checkLength("question", asked.length, MOST_QUESTION_TOKENS);
      checkLength("text", tokens.length, this.length - asked.length - 3);
      const { cls_id, sep_id } = this.wordpiece, ids = (of) => of.map((one) => one.id);
      const input = [cls_id, ...ids(asked), sep_id, ...ids(tokens), sep_id], first = asked.length + 2;
      const { hidden } = this.encoder.forward(input, input.map((_, i) => (i < first ? 0 : 1)));
      const scores = this.boundaries.forward(hidden); // [n,2]
      const [start, end] = [0, 1].map((which) => tokens.map((_, i) => scores[2 * (first + i) + which]));
      const spans = bestSpans(start, end, best).map(({ first, last, score }) => {
        const [begin, close] = [tokens[first].start, tokens[last].end];
        return { text: context.slice(begin, close), start: begin, end: close, score, first, last };
      });
      const nullScore = scores[0] + scores[1];
      return { tokens, start, end, spans, nullScore, nullOdds: nullScore - spans[0].score };
    }
  }

  /** The `best` spans of context tokens, the highest S_first + E_last first. */
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
    const [tokenize, fill, answer] = ["tokenize", "fill", "answer"].map((name) => (...given) => call(name, ...given));
    const stop = () => {
      thread.terminate();
      URL.revokeObjectURL(address);
    };
    return { ready, tokenize, fill, answer, stop };
  }

  return { InputError, open, worker, serve };
})();
