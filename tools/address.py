"""The repository's public address, for the pages and the notebooks (`make address`).

On GitHub the address is `GITHUB_REPOSITORY` (OWNER/NAME), which every workflow has; elsewhere set
that variable, or `repository: url:` in `_config.yml`. From it come, in every notebook, the line
that installs the package on Colab and a badge for readers on GitHub, and, in the built pages, the
launch and repository buttons. Without an address there is no badge and no button, and on Colab the
setup cell looks for the book's folder. The workflow pushes what this writes to the branch that the
buttons open; the main branch has no address.
"""

import os
import re
import sys
from pathlib import Path
from typing import NamedTuple

import nbformat
import yaml

from kinds import has_tag

PUBLISHED = "colab"  # the branch that the workflow pushes and the buttons open
GITHUB = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+")
SETUP_TAGS = ["colab-setup", "hide-input", "nbval-ignore-output"]
BADGE_TAGS = ["colab-badge", "remove-cell"]
COLAB = "https://colab.research.google.com"

TITLE = "# @title Setup: on Colab this installs the book's package; elsewhere it does nothing"
WITH_ADDRESS = f"""\
{TITLE}
import sys

if "google.colab" in sys.modules:
    %pip install -q "spanbert-tutorial @ git+{{url}}@{{version}}"
"""
# No web address: the folder was copied to Colab or to Google Drive, at most one folder deep.
WITHOUT_ADDRESS = f"""\
{TITLE}
import sys

if "google.colab" in sys.modules:
    from pathlib import Path

    from google.colab import drive

    def find_book():
        for top in ("/content", "/content/drive/MyDrive"):
            for depth in ("*", "*/*"):
                for file in Path(top).glob(f"{{depth}}/spanbert_tutorial/__init__.py"):
                    return file.parents[1]

    if not (book := find_book()):
        drive.mount("/content/drive")
        book = find_book()
    if not book:
        sys.exit("Copy the book's folder to Colab or Google Drive, then run this cell again.")
    %pip install -q "{{book}}"
"""


class Address(NamedTuple):
    """Where the book is public; `url` is "" where it is not. `version`: what Colab installs."""

    url: str = ""
    branch: str = PUBLISHED
    version: str = PUBLISHED

    @property
    def pages(self) -> str:
        """The address of the pages that GitHub serves."""
        owner, name = self.url.split("/")[-2:]
        return f"https://{owner.lower()}.github.io/{name}/"


def read_address(config: Path) -> Address:
    """The public address in `_config.yml`. On GitHub its version is the commit of the workflow."""
    settings = yaml.safe_load(config.read_text(encoding="utf-8")).get("repository") or {}
    url = str(settings.get("url") or "").rstrip("/").removesuffix(".git")
    if not url:
        return Address()
    if not GITHUB.fullmatch(url):
        sys.exit(f"{config.name}: the url is {url!r}; write https://github.com/OWNER/NAME or none.")
    branch = str(settings.get("branch") or PUBLISHED)
    return Address(url, branch, os.environ.get("GITHUB_SHA") or branch)


def setup_source(address: Address) -> str:
    with_address = WITH_ADDRESS.format(url=address.url, version=address.version)
    return (with_address if address.url else WITHOUT_ADDRESS).rstrip("\n")


def badge_source(address: Address, place: str) -> str:
    """Markdown of the badge that opens the notebook at `place` (a path inside the repository) on
    Colab."""
    repository = address.url.removeprefix("https://github.com/")
    link = f"{COLAB}/github/{repository}/blob/{address.branch}/{place}"
    return f"[![Open in Colab]({COLAB}/assets/colab-badge.svg)]({link})"


def write_cells(notebook: nbformat.NotebookNode, address: Address, place: str) -> None:
    """Give the notebook its setup cell and, when there is an address, its badge; take an old badge
    away."""
    cells = [cell for cell in notebook.cells if not has_tag(cell, "colab-badge")]
    setup = next((cell for cell in cells if has_tag(cell, "colab-setup")), None)
    if setup is None:
        setup = nbformat.v4.new_code_cell()
        cells.insert(1, setup)
    setup.source = setup_source(address)
    setup.metadata = nbformat.NotebookNode(tags=list(SETUP_TAGS), cellView="form")
    if address.url:
        badge = nbformat.v4.new_markdown_cell(badge_source(address, place))
        badge.metadata = nbformat.NotebookNode(tags=list(BADGE_TAGS))
        cells.insert(1, badge)
    notebook.cells = cells


def write_settings(config_text: str, address: Address) -> str:
    """The text of `_config.yml` with this address and its buttons, or with neither."""
    there = bool(address.url)
    values = {
        "url": f'"{address.url}"',
        "use_repository_button": str(there).lower(),
        "use_issues_button": str(there).lower(),
        "colab_url": f'"{COLAB}"' if there else '""',
        "baseurl": f'"{address.pages}"' if there else '""',
    }
    for key, value in values.items():
        config_text, times = re.subn(rf"(?m)^(\s*{key}:).*$", rf"\g<1> {value}", config_text)
        assert times == 1, f"_config.yml: the line `{key}:` is there {times} times, not once."
    return config_text
