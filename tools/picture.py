"""Pictures of pages that are no notebooks: the README's, the welcome page's, the page of
notation's.

`python tools/picture.py` draws them into `book_assets/`; a test checks that they are what the
package draws today.
"""

from environment import ROOT
from road import draw_map, read_road
from spanbert_tutorial.figures import legend, own_data

FOLDER = ROOT / "book_assets"
MAP_COLUMNS = 3
PICTURES = {
    "language.svg": legend.language,
    "own_data.svg": own_data.two_ways,
    "road.svg": lambda: draw_map(read_road(ROOT), MAP_COLUMNS),  # with links in the built page
}


def drawn(name: str) -> str:
    """The content of a picture's file."""
    return PICTURES[name]().svg() + "\n"


if __name__ == "__main__":
    for picture in PICTURES:
        (FOLDER / picture).write_text(drawn(picture), encoding="utf-8")
        print(f"book_assets/{picture} is drawn.")
