"""WordPiece: words become tokens. Chapter: `book/bert/wordpiece`.

First written out, then on the `tokenizers` library, which is what real corpora need. Source: BERT
§3, and the WordPiece papers named in the chapter. Text is cased unless you ask for lower case.
"""

import json
import math
import string
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache, reduce
from itertools import chain
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from spanbert_tutorial.engine.files import write_text
from spanbert_tutorial.errors import InputError, check_text, require
from spanbert_tutorial.text.lines import read_text

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
CHINESE_BLOCKS = [(0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF)]
CHINESE_BLOCKS += [(0x20000, 0x2CEAF), (0x2F800, 0x2FA1F)]


# --- words, tokens, merges ----------------------------------------------------------


@cache
def is_punctuation(character: str) -> bool:
    """Every ASCII sign that is no letter, digit or space, and Unicode's P categories."""
    return character in string.punctuation or unicodedata.category(character).startswith("P")


@cache
def is_chinese(character: str) -> bool:
    """Chinese characters are words of their own."""
    return any(low <= ord(character) <= high for low, high in CHINESE_BLOCKS)


def split_words(text: str) -> list[str]:
    """BERT's words: cut at spaces; a punctuation mark is a word."""
    spaced = []
    for character in text:
        kind = unicodedata.category(character)
        if character in "\t\n\r" or kind.startswith("Z"):
            spaced.append(" ")
        elif character == "\ufffd" or kind in ("Cc", "Cf", "Co"):
            continue  # control characters carry no text
        elif is_punctuation(character) or is_chinese(character):
            spaced.append(f" {character} ")
        else:
            spaced.append(character)
    return "".join(spaced).split()


def split_word(
    word: str, vocabulary: set[str], longest: int = 100
) -> list[str]:
    """Tokens of a word: the longest match first, from the left.

    Tokens that do not begin the word carry `##`. A word with any stretch that no token covers, or
    with more than `longest` characters, becomes `["[UNK]"]`.
    """
    tokens: list[str] = []
    start = 0
    while start < len(word) <= longest:
        mark = "##" if start else ""
        for end in range(len(word), start, -1):  # the longest first
            if mark + word[start:end] in vocabulary:
                break
        else:
            return ["[UNK]"]  # nothing matches: the whole word is lost
        tokens.append(mark + word[start:end])
        start = end
    return tokens or ["[UNK]"]


def single_tokens(word: str) -> tuple[str, ...]:
    """The word as single characters, each a token: what learning starts from."""
    return (word[:1], *("##" + character for character in word[1:]))


def joined(pair: tuple[str, str]) -> str:
    """The token that merging a pair makes."""
    return pair[0] + pair[1].removeprefix("##")


def count_tokens(
    words: dict[tuple[str, ...], int],
) -> tuple[Counter[str], Counter[tuple[str, str]]]:
    """How often each token occurs, and each pair of neighbors."""
    tokens: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    for word, count in words.items():
        for token in word:
            tokens[token] += count
        for pair in zip(word, word[1:], strict=False):
            pairs[pair] += count
    return tokens, pairs


def likelihood_gain(pair: tuple[str, str], together: int, tokens: Counter, total: int) -> float:
    """By how many nats the log-likelihood of the text rises when a pair is merged, each token drawn
    by its share.

    tokens: token → count, `total` in all. Exact when the two tokens differ; in a run of one and the
    same token the pairs are counted as if they did not overlap.
    """
    change = Counter({joined(pair): together})
    for token in pair:
        change[token] -= together

    def weighted(count: int) -> float:
        return count * math.log(count) if count > 0 else 0.0

    rise = sum(weighted(tokens[t] + more) - weighted(tokens[t]) for t, more in change.items())
    return rise + weighted(total) - weighted(total - together)


def pair_scores(
    words: dict[tuple[str, ...], int], by: str = "likelihood"
) -> dict[tuple[str, str], float]:
    """The score of merging each pair of neighboring tokens.

    words: tuples of tokens with their counts. by: "frequency" (BPE), how often the pair stands
    together; "likelihood" (WordPiece, as usually described), that count divided by the product of
    the counts of its parts; "gain", `likelihood_gain`. Raises InputError for any other.
    """
    tokens, pairs = count_tokens(words)
    if by == "frequency":
        return dict(pairs)
    if by == "likelihood":
        return {
            (left, right): count / (tokens[left] * tokens[right])
            for (left, right), count in pairs.items()
        }
    if by == "gain":
        total = tokens.total()
        return {
            pair: likelihood_gain(pair, count, tokens, total)
            for pair, count in pairs.items()
        }
    raise InputError(
        f'no criterion "{by}": give frequency, likelihood or gain.'
    )


def merge_pair(
    word: tuple[str, ...], pair: tuple[str, str]
) -> tuple[str, ...]:
    """The word with each occurrence of the pair as one token."""
    merged: list[str] = []
    for token in word:
        if merged and (merged[-1], token) == pair:
            merged[-1] = joined(pair)
        else:
            merged.append(token)
    return tuple(merged)


def learn_merges(
    word_counts: dict[str, int], merges: int, by: str = "likelihood"
) -> list[tuple[str, str]]:
    """The merges, best score first; ties in alphabetical order."""
    words = {
        single_tokens(word): count
        for word, count in word_counts.items()
    }
    learned: list[tuple[str, str]] = []
    while len(learned) < merges and (scores := pair_scores(words, by)):
        best = min(scores, key=lambda pair: (-scores[pair], pair))
        words = {
            merge_pair(word, best): count
            for word, count in words.items()
        }
        learned.append(best)
    return learned


def apply_merges(word: str, merges: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The tokens of a word after the merges in turn: how BPE encodes. WordPiece: `split_word`."""
    return reduce(merge_pair, merges, single_tokens(word))


# --- on the library: the tokenizer that the rest of the project uses ----------------


def bert_tokenizer(vocabulary: dict[str, int], lowercase: bool = False) -> Tokenizer:
    """A `tokenizers.Tokenizer` with BERT's rules over a vocabulary token → id. lowercase: also
    strips accents."""
    model = models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    tokenizer.add_special_tokens(SPECIALS)
    return tokenizer


def learn_tokens(
    texts: Sequence[str], first: list[str], characters: list[str], vocab_size: int
) -> dict[str, int]:
    """Token → id by the library's trainer: `first` in front, then the characters, then merges."""
    tokenizer = bert_tokenizer({special: i for i, special in enumerate(SPECIALS)})
    # in pieces: on a word without end the trainer takes the square of its length in time
    pieces = pre_tokenizers.FixedLength(1_000)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([tokenizer.pre_tokenizer, pieces])
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size,
        special_tokens=first,
        initial_alphabet=characters,
        limit_alphabet=len(characters),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer.get_vocab()


class WordPiece:
    """A vocabulary and its encoder. `vocabulary[i]` is the token with id i; `starts[i]` says whether
    it begins a word, which special tokens do, as in the released SpanBERT code.

    library: the tokenizer of a checkpoint; None: one with BERT's rules. Raises InputError for a
    vocabulary without the special tokens, or with other ids than 0, 1, 2, …
    """

    def __init__(
        self, vocabulary: dict[str, int], lowercase: bool = False, library: Tokenizer | None = None
    ):
        missing = ", ".join(special for special in SPECIALS if special not in vocabulary)
        require(not missing, f"the vocabulary has no {missing}: add each on a line of its own.")
        check_text("a token of the vocabulary", *vocabulary)
        told = "the ids of its tokens are not 0, 1, 2, …: take a whole vocabulary, each token once."
        require(sorted(vocabulary.values()) == list(range(len(vocabulary))), told)
        self.library = library or bert_tokenizer(vocabulary, lowercase)
        self.vocabulary = sorted(vocabulary, key=vocabulary.__getitem__)
        self.starts = np.array([not token.startswith("##") for token in self.vocabulary])
        ids = (vocabulary[special] for special in SPECIALS)
        self.pad_id, self.unk_id, self.cls_id, self.sep_id, self.mask_id = ids

    @classmethod
    def from_file(cls, path: str | Path, lowercase: bool = False) -> "WordPiece":
        """Reads BERT's `vocab.txt` (one token a line, the line number is the id) or a checkpoint's
        `tokenizer.json`."""
        text = read_text(path, "a vocab.txt or a tokenizer.json")
        try:
            if Path(path).suffix == ".json":
                return cls.from_tokenizer_json(text)
            require("\t" not in text, "its lines have a tab and a second column: remove them.")
            tokens = text.rstrip("\n").split("\n")
            return cls({token: i for i, token in enumerate(tokens)}, lowercase)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None

    @classmethod
    def from_tokenizer_json(cls, text: str) -> "WordPiece":
        """What `tokenizers` makes of such a file: its normalizer, its words, its added tokens."""
        try:
            library = Tokenizer.from_str(text)
            model = library.model
            fits = isinstance(model, models.WordPiece) and model.continuing_subword_prefix == "##"
        except Exception:  # the library raises an Exception of no kind
            fits = False
        require(fits, "it is not the tokenizer.json of a WordPiece vocabulary: give a vocab.txt.")
        library.no_padding()
        library.no_truncation()
        return cls(library.get_vocab(), library=library)

    @property
    def lowercase(self) -> bool:
        return bool(getattr(self.library.normalizer, "lowercase", False))

    @property
    def strip_accents(self) -> bool:
        strip = getattr(self.library.normalizer, "strip_accents", False)
        return self.lowercase if strip is None else strip

    def with_tokens(self, tokens: Iterable[str]) -> "WordPiece":
        """The same rules, with these tokens behind the vocabulary's own; those that it has stay
        where they are. No text is cut into them."""
        settings = json.loads(self.library.to_str())
        every = dict.fromkeys([*self.vocabulary, *tokens])
        settings["model"]["vocab"] = {token: i for i, token in enumerate(every)}
        return WordPiece.from_tokenizer_json(json.dumps(settings))

    @classmethod
    def train(cls, texts: Iterable[str], vocab_size: int) -> "WordPiece":
        """A cased vocabulary of at most `vocab_size` tokens: first the 1,000 most frequent characters
        and every other one that is at least a millionth of the text. The same texts give the same.

        The library's trainer merges by *frequency*, as BPE does, not by likelihood; only the result
        is used as WordPiece. Raises InputError when not even the single characters fit.
        """
        require(not isinstance(texts, str), "texts is one string: give a list, such as [text].")
        texts = list(texts)
        # Of characters equally common the trainer keeps any, and ties are broken by the numbers of
        # tokens such as ##a, which it gives as it meets them. So the characters are chosen here, a
        # first pass collects their tokens, and the second is told the numbers.
        counts = Counter(chain.from_iterable(texts))
        found = [character for character in counts if split_words(character)]
        found.sort(key=lambda character: (-counts[character], character))
        rare = counts.total() / 1_000_000
        characters = [c for i, c in enumerate(found) if i < 1_000 or counts[c] >= rare]
        singles = learn_tokens(texts, SPECIALS, characters, 0)
        while (surplus := len(singles) - vocab_size) > 0 and len(characters) > 1_000:
            # the rarest go; each has one token or two
            characters = characters[: max(1_000, len(characters) - (surplus + 1) // 2)]
            singles = learn_tokens(texts, SPECIALS, characters, 0)
        told = f"{vocab_size} tokens cannot hold {len(singles)} characters: give a larger vocabulary."
        require(surplus <= 0, told)
        first = SPECIALS + sorted(t for t in singles if t.startswith("##") and len(t) == 3)
        return cls(learn_tokens(texts, first, characters, vocab_size))

    def __len__(self) -> int:
        return len(self.vocabulary)

    def encode(self, text: str) -> np.ndarray:
        """Ids of a text, int64 [n], without [CLS] and [SEP]. Raises InputError for half a
        character."""
        check_text("the text", text)
        return np.array(self.library.encode(text, add_special_tokens=False).ids, dtype=np.int64)

    def encode_with_offsets(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """The same, and where each token begins and ends in the text, in characters, int64
        [n,2]."""
        check_text("the text", text)
        encoding = self.library.encode(text, add_special_tokens=False)
        offsets = np.array(encoding.offsets, dtype=np.int64).reshape(-1, 2)
        return np.array(encoding.ids, dtype=np.int64), offsets

    def encode_many(self, texts: list[str]) -> list[list[int]]:
        """Ids of many texts at once, on all cores."""
        check_text("a text", *texts)
        found = self.library.encode_batch_fast(texts, add_special_tokens=False)
        return [encoding.ids for encoding in found]

    def word_starts(self, ids: np.ndarray) -> np.ndarray:
        """bool, same shape as `ids`: True where a token begins a word."""
        return self.starts[ids]

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The tokens with these ids; of an id that only the model has, as where its table is larger
        than the vocabulary, `[id 2000]`. Raises InputError for a negative one."""
        found = list(ids)
        lowest = min(found, default=0)
        require(lowest >= 0, f"no token has the id {lowest}: ids begin with 0.")
        return [self.vocabulary[i] if i < len(self) else f"[id {i}]" for i in found]

    def decode(self, ids: Iterable[int]) -> str:
        """Readable text: tokens joined to words, no space before closing punctuation."""
        return self.library.decode([int(i) for i in ids], skip_special_tokens=False)

    def save(self, folder: str | Path) -> None:
        """Writes `tokenizer.json` and `tokenizer_config.json`, which `transformers.AutoTokenizer`
        opens. Raises OSError when that cannot be done."""
        folder = Path(folder)
        # not by the library's own `save`, which tells a full disk by an Exception of no kind
        (folder / "tokenizer.json").write_text(self.library.to_str(pretty=True), encoding="utf-8")
        settings: dict[str, object] = {"tokenizer_class": "PreTrainedTokenizerFast"}
        normalizer = self.library.normalizer
        if isinstance(normalizer, normalizers.BertNormalizer):
            settings = {
                "tokenizer_class": "BertTokenizer",
                "do_lower_case": normalizer.lowercase,
                "strip_accents": normalizer.strip_accents,
                "tokenize_chinese_chars": normalizer.handle_chinese_chars,
            }
        settings["model_max_length"] = 512
        settings |= {f"{special[1:-1].lower()}_token": special for special in SPECIALS}
        text = json.dumps(settings, indent=2) + "\n"
        (folder / "tokenizer_config.json").write_text(text, encoding="utf-8")

    def save_vocabulary(self, path: str | Path) -> None:
        """Writes BERT's `vocab.txt`, whole or not at all. Raises OSError when that cannot be
        done."""
        write_text(path, "\n".join(self.vocabulary) + "\n")
