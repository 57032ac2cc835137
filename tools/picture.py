"""`python tools/picture.py` makes the picture beside a shared link, `book_assets/card.png`, from
`card.svg`; it needs Chromium."""

from playwright.sync_api import sync_playwright

from environment import ROOT, find_chromium

FOLDER = ROOT / "book_assets"

if __name__ == "__main__":
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=["--no-sandbox", "--disable-gpu"]
        )
        page = browser.new_page(viewport={"width": 1200, "height": 630})
        page.goto((FOLDER / "card.svg").as_uri())
        page.screenshot(path=FOLDER / "card.png")
        browser.close()
