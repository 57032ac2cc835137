"""GPT-2's tokens beside BERT's, and the four input formats over Wikipedia. Evidence:
`book/evidence/relatives`.

The folder `--data` holds `vocab/` with GPT-2's two files and BERT's cased vocabulary, and
`wikipedia/valid.jsonl.xz`, which this project does not ship. Only figures and the tokens of our own
example texts are kept.
"""

import lzma
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from research.results import rounded
from spanbert_tutorial.bert.wordpiece import WordPiece
from spanbert_tutorial.errors import InputError
from spanbert_tutorial.relatives.byte_bpe import ByteBPE
from spanbert_tutorial.relatives.roberta import FORMATS, FormatData
from spanbert_tutorial.text.corpora import documents
from spanbert_tutorial.text.encoding import encode_corpus

TEXTS = {
    "space": " It was a great day",
    "no space": "It was a great day",
    "epiphany": "I had a sudden epiphany",
    "rare": "Eyjafjallajökull erupted",
    "emoji": "Well done 🙂",
    "Korean": "나는 오늘 아침 공항에 제시간에 도착했다",
}
LENGTHS = (128, 512)


def vocabularies(folder: Path) -> tuple[WordPiece, ByteBPE]:
    """BERT's cased vocabulary and GPT-2's. Raises InputError when a file is missing."""
    byte_bpe = ByteBPE.from_files(folder / "gpt2-encoder.json.xz", folder / "gpt2-vocab.bpe.xz")
    packed = folder / "bert-base-cased-vocab.txt.xz"
    if not packed.is_file():
        raise InputError(
            f"{packed} is missing: give the folder that holds BERT's cased vocabulary, too."
        )
    with TemporaryDirectory() as scratch:
        plain = Path(scratch, "vocab.txt")
        plain.write_bytes(lzma.decompress(packed.read_bytes()))
        return WordPiece.from_file(plain), byte_bpe


def hangul(text: str) -> int:
    """How many characters of a text are Korean syllables."""
    return sum("가" <= character <= "힣" for character in text)


def cut(texts: dict[str, str], wordpiece: WordPiece, byte_bpe: ByteBPE) -> dict[str, dict]:
    """The tokens of each text in both vocabularies, and whether the text comes back."""
    results = {}
    for name, text in texts.items():
        ids = wordpiece.encode(text)
        byte_ids = byte_bpe.encode(text)
        results[name] = {
            "text": text,
            "wordpiece": wordpiece.tokens(ids),
            "unknown": int((ids == wordpiece.unk_id).sum()),
            "wordpiece_back": wordpiece.decode(ids) == text,
            "byte_bpe": byte_bpe.split(text),
            "byte_bpe_back": byte_bpe.decode(byte_ids) == text,
        }
    return results


def format_statistics(corpus_path: Path, wordpiece: WordPiece) -> dict[str, Any]:
    """`FormatData.statistics` of the four formats at each of LENGTHS; and how much text there
    was."""
    with TemporaryDirectory() as scratch:
        corpus = encode_corpus(
            documents(corpus_path), wordpiece.encode_many, len(wordpiece), scratch
        )
        results: dict[str, Any] = {
            "documents": len(corpus.document_ends),
            "tokens": len(corpus.ids),
        }
        for n in LENGTHS:
            data = {form: FormatData(corpus, wordpiece, n, 1, form=form) for form in FORMATS}
            results[str(n)] = {form: one.statistics() for form, one in data.items()}
    return results


def content(folder: Path, data: Path) -> dict:
    """The content of the file."""
    wordpiece, byte_bpe = vocabularies(data / "vocab")
    wikipedia = format_statistics(data / "wikipedia" / "valid.jsonl.xz", wordpiece)
    return {
        "sources": {
            "vocabularies": "bert-base-cased (Apache 2.0), GPT-2 (MIT)",
            "wikipedia": "135 documents of English Wikipedia, May 2015 (CC BY-SA 3.0); "
            "statistics only",
        },
        "vocabulary": {
            "wordpiece": len(wordpiece),
            "byte_bpe": len(byte_bpe),
            "merges": len(byte_bpe.merges),
        },
        "korean_characters": hangul(TEXTS["Korean"]),
        "texts": cut(TEXTS, wordpiece, byte_bpe),
        "wikipedia": rounded(wikipedia),
    }
