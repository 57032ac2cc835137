"""Pictures of pages that are no notebooks: the README's, the welcome page's, the page of
notation's.

`python tools/picture.py` draws them into `book_assets/`; a test checks that they are what the
package draws today. `python tools/picture.py card` makes the picture beside a shared link.
"""

import sys

from environment import ROOT, find_chromium
from road import draw_map, read_road

FOLDER = ROOT / "book_assets"
MAP_COLUMNS = 3
PICTURES = {
    "road.svg": lambda: draw_map(read_road(ROOT), MAP_COLUMNS)  # with links in the built page
}


def drawn(name: str) -> str:
    """The content of a picture's file."""
    return PICTURES[name]().svg() + "\n"


def photograph() -> None:
    """Make card.png, the picture beside a shared link, from card.svg; it needs Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1200, "height": 630})
        page.goto((FOLDER / "card.svg").as_uri())
        page.screenshot(path=FOLDER / "card.png")
        browser.close()


if __name__ == "__main__":
    if sys.argv[1:] == ["card"]:
        sys.exit(photograph())
    for picture in PICTURES:
        (FOLDER / picture).write_text(drawn(picture), encoding="utf-8")
        print(f"book_assets/{picture} is drawn.")
