"""Documents from files, encoded once and memory-mapped. Chapter: `book/spanbert/single_sequence`.

A document is a list of sentences. Files may be `.txt` (a blank line ends a document, as in BERT's and SpanBERT's data),
`.jsonl` (one document a line, under the key `text`), either of these packed as `.xz` or `.gz`, or a folder of them. A
name such as `Salesforce/wikitext:wikitext-103-raw-v1` that is no path is read from the Hugging Face hub.
"""

import gc
import gzip
import lzma
import re
import shutil
import zlib
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np

from spanbert_tutorial.errors import InputError, check_text, parse_json, regular_file

Document = list[str]

# OWNER/NAME or OWNER/NAME:CONFIGURATION
HUB_SET = re.compile(r"([\w.-]+/[\w.-]+)(?::([\w.-]+))?")
# . ! or ? with closing quotes and brackets, then space, then (perhaps after an opening one) a letter or digit
SENTENCE_END = re.compile(r"""([.!?]["')\]”’]*)(\s+)(?=["'(\[“‘]?([^\W_]))""")
OPENERS = {"": open, ".xz": lzma.open, ".gz": gzip.open}
BROKEN_PACKING = (lzma.LZMAError, gzip.BadGzipFile, zlib.error, EOFError)
FORMS = (".txt", ".jsonl")


def split_sentences(text: str) -> Document:
    """Sentences of a text: a line end always divides; so does . ! or ? before a space and A to Z, a digit, or a letter
    of a script that has no capitals, such as Hangul."""
    def end(found: re.Match) -> str:
        return found[1] + ("\n" if begins_a_sentence(found[3]) else found[2])

    return [sentence.strip() for sentence in SENTENCE_END.sub(end, text).split("\n") if sentence.strip()]


def begins_a_sentence(sign: str) -> bool:
    """Whether a letter or digit may. A capital with an accent may not: so the kept results cut their texts."""
    if sign.isascii():
        return sign.isupper() or sign.isdigit()
    return sign.isalpha() and sign.lower() == sign.upper()


def form_and_packing(path: Path) -> tuple[str, str]:
    """(`.txt` or `.jsonl`, packing or ""), or ("", "") for a file of another kind."""
    packing = path.suffix if path.suffix in OPENERS else ""
    form = Path(path.stem).suffix if packing else path.suffix
    return (form, packing) if form in FORMS else ("", "")


def corpus_files(path: str | Path) -> list[Path]:
    """The readable files at a path, in the order of their names. Raises InputError when there is none."""
    path = Path(path)
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"the corpus {path} does not exist: give a .txt or .jsonl file (also .xz, .gz), a folder, or "
                         "OWNER/NAME of the Hugging Face hub.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"the corpus {path} cannot be read ({error}): give another, or mend that.") from None
    files = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
    files = [file for file in files if form_and_packing(file)[0]]
    if not files:
        raise InputError(f"the corpus {path} holds no .txt or .jsonl file (also .xz, .gz): give one that does.")
    return files


def text_documents(lines: Iterable[str]) -> Iterator[str]:
    """Texts between blank lines."""
    kept: list[str] = []
    for line in lines:
        if line.strip():
            kept.append(line)
        elif kept:
            yield "".join(kept)
            kept = []
    if kept:
        yield "".join(kept)


def jsonl_documents(lines: Iterable[str], path: Path, leave_out: Collection[str] = ()) -> Iterator[str]:
    """The value of `text` on each line, without the documents whose `title` is to be left out."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            document = parse_json(line)
            text = document["text"]
            check_text("it", text)  # JSON can spell half a character (\ud83d alone), which no vocabulary can read
        except (ValueError, KeyError, TypeError):
            wrong = f'{path}, line {number}: not a JSON object with a string under "text"; mend that line.'
            raise InputError(wrong) from None
        if not left_out(document.get("title"), leave_out, f"{path}, line {number}"):
            yield text


def left_out(title: object, leave_out: Collection[str], where: str) -> bool:
    """Whether a document is to be left out. Raises InputError for a title that is no text: it might be one of them."""
    if leave_out and not isinstance(title, str | None):
        raise InputError(f"{where}: the title is no string, so it cannot be compared with those to leave out; mend it.")
    return isinstance(title, str | None) and title in leave_out


def read_file(path: Path, leave_out: Collection[str] = ()) -> Iterator[str]:
    """Texts of the documents of one file."""
    form, packing = form_and_packing(path)
    opener: Callable[..., IO[str]] = OPENERS[packing]
    try:
        with opener(regular_file(path), "rt", encoding="utf-8-sig") as lines:  # -sig: some editors put a mark in front
            yield from text_documents(lines) if form == ".txt" else jsonl_documents(lines, path, leave_out)
    except UnicodeDecodeError:
        raise InputError(not_utf8(path, opener)) from None
    except BROKEN_PACKING:
        raise InputError(f"{path} is not a whole {packing} file: pack or copy it again.") from None
    except PermissionError:
        raise InputError(f"{path} may not be read: change its permissions.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}): copy it to another place, or mend that.") from None


def not_utf8(path: Path, opener: Callable[..., IO[bytes]]) -> str:
    """What to say of a file in which there is a byte that is not UTF-8; a packed one may also break off after it."""
    try:
        return f"{path} is not UTF-8 at byte {first_bad_byte(opener(path, 'rb')):,}: convert it to UTF-8."
    except BROKEN_PACKING:
        return f"{path} is not a whole {path.suffix} file: pack or copy it again."


def first_bad_byte(file: IO[bytes]) -> int:
    """Place of the first byte that is not UTF-8, counted from 0 in the unpacked file. Closes the file."""
    place = 0
    with file:
        for line in file:  # a line end is one byte in UTF-8 and never part of a character
            try:
                line.decode()
            except UnicodeDecodeError as error:
                return place + error.start
            place += len(line)
    return place


def documents(path: str | Path, leave_out: Collection[str] = ()) -> Iterator[Document]:
    """Every document of a file or folder as its sentences; of `.jsonl` files not those whose `title` is in `leave_out`.

    Raises InputError naming the file and what to do.
    """
    found = False
    name = HUB_SET.fullmatch(str(path))
    if name and not Path(path).exists() and not form_and_packing(Path(path))[0]:
        texts = hub_texts(*name.groups(), leave_out)
    else:
        texts = (text for file in corpus_files(path) for text in read_file(file, leave_out))
    for text in texts:
        if sentences := split_sentences(text):
            found = True
            yield sentences
    if not found:
        raise InputError(f"the corpus {path} holds no text: give a file with at least one sentence.")


def hub_rows(name: str, *configuration: str | None, **which: object) -> Iterable[dict]:
    """The rows of a set of the Hugging Face hub. which: for `datasets.load_dataset`, such as `split`.

    Raises InputError when there is no network, no such set, or no such part of it.
    """
    import datasets  # slow to import, and only this needs it

    datasets.disable_progress_bars()
    try:
        return datasets.load_dataset(name, *configuration, **which)
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        first_line = (str(error).splitlines() or [type(error).__name__])[0]
        wrong = f"the set {name} of the Hugging Face hub cannot be read ({first_line})"
        raise InputError(f"{wrong}: check name and network, or give the path of a file.") from None


def hub_texts(name: str, configuration: str | None, leave_out: Collection[str] = ()) -> Iterator[str]:
    """The column `text` of a set's part `train`, read as it arrives, without the titles to leave out."""
    rows = iter(hub_rows(name, configuration, split="train", streaming=True))
    while (row := next_row(rows, name)) is not None:
        if not isinstance(row.get("text"), str):
            raise InputError(f"the set {name} has no column of strings called text: save it as a .jsonl that has one.")
        if not left_out(row.get("title"), leave_out, f"the set {name}"):
            yield row["text"]


def next_row(rows: Iterator[dict], name: str) -> dict | None:
    """The next row as it arrives, or None at the end."""
    from datasets.exceptions import DatasetsError

    try:
        return next(rows, None)
    except (OSError, DatasetsError) as error:
        wrong = f"the set {name} of the Hugging Face hub broke off ({type(error).__name__})"
        raise InputError(f"{wrong}: check the network and start again.") from None


@dataclass(frozen=True)
class EncodedCorpus:
    """Pieces of all documents one after another. Arrays on disk are memory-mapped, so a large corpus costs no memory.

    ids: [N] pieces, uint16 where the vocabulary allows. sentence_ends: [S] and document_ends: [D], positions in `ids`
    just after each sentence and document; every document end is also a sentence end. labelled: [m, 3], spans of a known
    kind, such as entities: (first, one past the last, kind), in the order of the text; none unless they are given.
    """

    ids: np.ndarray
    sentence_ends: np.ndarray
    document_ends: np.ndarray
    labelled: np.ndarray = field(default_factory=lambda: np.empty((0, 3), dtype=np.int64))

    @classmethod
    def load(cls, folder: str | Path) -> "EncodedCorpus":
        """Opens the arrays that `encode_corpus` wrote. Raises InputError when one is missing or cut off."""
        try:
            names = ("ids", "sentence_ends", "document_ends")
            return cls(*(np.load(Path(folder) / f"{name}.npy", mmap_mode="r") for name in names))
        except (OSError, ValueError, EOFError):
            raise InputError(f"{folder} holds no whole encoded corpus: encode the text again.") from None


def encode_corpus(documents: Iterable[Document], encode_many, vocabulary: int, folder: str | Path) -> EncodedCorpus:
    """Encodes documents once into `folder` (created) and opens the result.

    encode_many: list of sentences → list of lists of ids, e.g. `WordPiece.encode_many`. vocabulary: V, sets the width
    of the integers. Sentences that encode to nothing are left out. Raises InputError when nothing is left.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    kind = np.uint16 if vocabulary <= 2**16 else np.int32
    sentence_lengths, document_lengths = array("q"), array("q")  # eight bytes a number
    stream = iter(documents)
    with (folder / "ids.bin").open("wb") as raw, collector_sees_new_objects_only():
        while chunk := list(islice(stream, 500)):
            encoded = iter(encode_many([sentence for document in chunk for sentence in document]))
            for document in chunk:
                lists = [ids for ids in islice(encoded, len(document)) if ids]
                sentence_lengths.extend(len(ids) for ids in lists)
                document_lengths.extend([sum(map(len, lists))] if lists else [])
                raw.write(np.array([i for ids in lists for i in ids], dtype=kind).tobytes())
    save_raw(folder / "ids.bin", kind, folder / "ids.npy")
    np.save(folder / "sentence_ends.npy", np.cumsum(sentence_lengths, dtype=np.int64))
    np.save(folder / "document_ends.npy", np.cumsum(document_lengths, dtype=np.int64))
    return EncodedCorpus.load(folder)


@contextmanager
def collector_sees_new_objects_only() -> Iterator[None]:
    """Python's garbage collector skips what exists already, so it does not search through all that the libraries hold
    again and again."""
    frozen = gc.get_freeze_count()
    gc.freeze()
    try:
        yield
    finally:
        if not frozen:  # else somebody did it before, who wants it so
            gc.unfreeze()


def save_raw(raw: Path, kind: type, target: Path) -> None:
    """Turns a raw file of integers into an `.npy` file without reading it whole into memory."""
    count = raw.stat().st_size // np.dtype(kind).itemsize
    if count == 0:
        raw.unlink()
        raise InputError("the corpus holds no text after encoding: give a file with at least one sentence.")
    described = {"descr": np.lib.format.dtype_to_descr(np.dtype(kind)), "fortran_order": False, "shape": (count,)}
    with raw.open("rb") as source, target.open("wb") as file:  # written, not mapped: a full disk is then an error
        np.lib.format.write_array_header_1_0(file, described)
        shutil.copyfileobj(source, file, 2**24)
    raw.unlink()
