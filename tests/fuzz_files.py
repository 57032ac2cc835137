"""What the property-based suites of files share: JSON and bytes that begin whole and are then
spoiled."""

import gzip
import json
import lzma
from copy import deepcopy
from pathlib import Path

from hypothesis import strategies as st

PACK = {"": lambda data: data, ".xz": lzma.compress, ".gz": gzip.compress}
# stands in JSON for brackets, with their number, which Python could not write
DEEP = "nested so deeply: "
DEPTHS = (50, 900, 985, 200_000)

texts = st.text(st.characters(codec=None), max_size=8) | st.sampled_from(
    [
        "",
        " ",
        "\n",
        "\0",
        "\ud800",
        "\udfff",
        "a\ud83d",
        "\ufeff",
        "\u202e",
        "[UNK]",
        "##",
        "x" * 5_000,
        "é",
        "e\u0301",
        "東京",
        "😀",
    ]
)
numbers = (
    st.integers(-3, 20)
    | st.sampled_from(
        [2**31 - 1, 2**31, 2**63, 10**20, 10**400, -(2**70), 0.0, -0.0, 0.5, 1.5, 1e308]
    )
    | st.floats()
)
plain = (
    st.none()
    | st.booleans()
    | numbers
    | texts
    | st.sampled_from(DEPTHS).map(lambda depth: f"{DEEP}{depth}")
)
values = st.recursive(
    plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def places(content: object) -> list[tuple]:
    """(container, key) of everything inside JSON content."""
    pairs = (
        content.items()
        if isinstance(content, dict)
        else enumerate(content)
        if isinstance(content, list)
        else ()
    )
    found = [(content, key) for key, _ in pairs]
    return found + [place for _, value in list(pairs) for place in places(value)]


@st.composite
def spoiled(draw: st.DrawFn, whole: object) -> str:
    """The text of JSON that was whole before up to three things in it were replaced, removed,
    wrapped or added."""
    content = {"top": deepcopy(whole)}
    for _ in range(draw(st.integers(0, 3))):
        if not (found := places(content)):
            break
        holder, key = found[draw(st.integers(0, len(found) - 1))]
        change = draw(st.sampled_from(["replace", "replace", "remove", "wrap", "add", "again"]))
        if change == "replace":
            holder[key] = draw(values)
        elif change == "remove":
            del holder[key]
        elif change == "wrap":
            holder[key] = [holder[key]]
        elif isinstance(holder, dict):
            holder[draw(texts)] = draw(values) if change == "add" else deepcopy(holder[key])
        else:
            holder.append(draw(values) if change == "add" else deepcopy(holder[key]))
    text = json.dumps(content.get("top"), ensure_ascii=draw(st.booleans()))
    for depth in DEPTHS:
        text = text.replace(f'"{DEEP}{depth}"', "[" * depth + "]" * depth)
    return text


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """Bytes that were cut, changed in a few places, or joined with others; most often as they
    were."""
    how = draw(st.sampled_from(["whole", "whole", "whole", "cut", "flipped", "joined", "emptied"]))
    if how == "cut":
        return whole[: draw(st.integers(0, len(whole)))]
    if how == "flipped" and whole:
        found = bytearray(whole)
        for _ in range(draw(st.integers(1, 4))):
            found[draw(st.integers(0, len(found) - 1))] = draw(st.integers(0, 255))
        return bytes(found)
    if how == "joined":
        return whole + draw(st.binary(max_size=20))
    return b"" if how == "emptied" else whole


def in_bytes(text: str) -> bytes:
    """UTF-8, in which half a character stands as bytes that are none."""
    return text.encode("utf-8", "surrogatepass")


def read_json(data: bytes) -> object:
    """The content, for comparison; None where Python reads none."""
    try:
        return json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return None


def put(folder: Path, name: str, data: bytes) -> Path:
    """A new file."""
    (folder / name).write_bytes(data)
    return folder / name
