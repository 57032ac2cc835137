"""The README's picture: the stored figure of the cell tagged `readme-picture`, copied out of its chapter.

`python tools/picture.py` writes it; a test checks that it is still the chapter's.
"""

import base64

import nbformat

from environment import ROOT

CHAPTER = ROOT / "book" / "spanbert" / "pretraining_spanbert.ipynb"
PICTURE = ROOT / "book_assets" / "leaving_the_plateau.png"
TAG = "readme-picture"


def stored_picture() -> bytes:
    """The PNG that the chapter keeps."""
    cells = [c for c in nbformat.read(CHAPTER, as_version=4).cells if TAG in c.metadata.get("tags", [])]
    (image,) = (output.data["image/png"] for output in cells[0].outputs if "image/png" in output.get("data", {}))
    return base64.b64decode(image)


if __name__ == "__main__":
    PICTURE.write_bytes(stored_picture())
    print(f"{PICTURE.relative_to(ROOT)} is the chapter's figure.")
