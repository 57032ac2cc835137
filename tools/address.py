"""`make address`: carry the repository's public address from `_config.yml` to everything that needs
it.

The one setting is `repository: url:`. From it come, in every notebook, the line that installs the
package on Colab and a Colab badge for readers on GitHub, and, in the built pages, the launch and
repository buttons. While it is empty there is no badge, no button and no link.
"""

import re
import sys
from pathlib import Path

import nbformat
import yaml

from environment import ROOT

BRANCH = "main"
GITHUB = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+")
SETUP_TAGS = ["colab-setup", "hide-input", "nbval-ignore-output"]
BADGE_TAGS = ["colab-badge", "remove-cell"]
COLAB = "https://colab.research.google.com"

WITH_ADDRESS = """\
# @title Setup: on Colab this installs the book's package; elsewhere it does nothing
import sys

if "google.colab" in sys.modules:
    %pip install -q "spanbert-tutorial @ git+{url}@{branch}"
"""
WITHOUT_ADDRESS = """\
# @title Setup: on Colab this says how to install the book's package; elsewhere it does nothing
import sys

if "google.colab" in sys.modules:
    print("Upload the book's folder, then run: %pip install -q ./FOLDER")
"""


class AddressError(ValueError):
    """The setting in `_config.yml` cannot be used."""


def read_address(config: Path) -> str:
    """The public address in `_config.yml`, without a slash or `.git` at its end; "" while it is not
    set."""
    settings = yaml.safe_load(config.read_text(encoding="utf-8"))
    url = str((settings.get("repository") or {}).get("url") or "").rstrip("/").removesuffix(".git")
    if url and not GITHUB.fullmatch(url):
        raise AddressError(
            f"{config.name}: repository url is {url!r}; write https://github.com/OWNER/NAME, or "
            f"leave it empty."
        )
    return url


def setup_source(url: str) -> str:
    """Source of a notebook's first code cell."""
    text = WITH_ADDRESS.format(url=url, branch=BRANCH) if url else WITHOUT_ADDRESS
    return text.rstrip("\n")


def badge_source(url: str, place: str) -> str:
    """Markdown of the badge that opens the notebook at `place` (a path inside the repository) on
    Colab."""
    repository = url.removeprefix("https://github.com/")
    return (
        f"[![Open in "
        f"Colab]({COLAB}/assets/colab-badge.svg)]({COLAB}/github/{repository}/blob/{BRANCH}/{place})"
    )


def has_tag(cell: nbformat.NotebookNode, tag: str) -> bool:
    """Whether the cell carries the tag."""
    return tag in cell.metadata.get("tags", [])


def write_cells(notebook: nbformat.NotebookNode, url: str, place: str) -> None:
    """Give the notebook its setup cell and, when there is an address, its badge; take an old badge
    away."""
    cells = [cell for cell in notebook.cells if not has_tag(cell, "colab-badge")]
    setup = next((cell for cell in cells if has_tag(cell, "colab-setup")), None)
    if setup is None:
        setup = nbformat.v4.new_code_cell()
        cells.insert(1, setup)
    setup.source = setup_source(url)
    setup.metadata = nbformat.NotebookNode(tags=list(SETUP_TAGS), cellView="form")
    if url:
        badge = nbformat.v4.new_markdown_cell(badge_source(url, place))
        badge.metadata = nbformat.NotebookNode(tags=list(BADGE_TAGS))
        cells.insert(1, badge)
    notebook.cells = cells


def write_buttons(config_text: str, url: str) -> str:
    """The text of `_config.yml` with its buttons switched on when there is an address, off when
    there is none."""
    values = {
        "use_repository_button": "true" if url else "false",
        "use_issues_button": "true" if url else "false",
        "colab_url": f'"{COLAB}"' if url else '""',
    }
    for key, value in values.items():
        config_text, times = re.subn(rf"(?m)^(\s*{key}:).*$", rf"\g<1> {value}", config_text)
        if times != 1:
            raise AddressError(
                f"_config.yml: the line `{key}:` must be there once; it is there {times} times."
            )
    return config_text


def apply(root: Path = ROOT) -> list[str]:
    """Bring `_config.yml` and all notebooks of the book in line with the setting; names of the
    files changed."""
    from notebooks import book_notebooks, normalize, read, serialize

    config = root / "_config.yml"
    url = read_address(config)
    new = {config: write_buttons(config.read_text(encoding="utf-8"), url)}
    for path in book_notebooks(root):
        new[path] = serialize(normalize(read(path), path, root))
    changed = [path for path, text in new.items() if path.read_text(encoding="utf-8") != text]
    for path in changed:
        path.write_text(new[path], encoding="utf-8", newline="\n")
    return [path.relative_to(root).as_posix() for path in changed]


def main() -> int:
    """Apply the setting and say what changed."""
    try:
        changed = apply()
    except AddressError as problem:
        print(problem, file=sys.stderr)
        return 2
    url = read_address(ROOT / "_config.yml")
    print(f"Address: {url or 'not set, so there are no badges and no buttons'}.")
    print("\n".join(f"changed: {name}" for name in changed) or "Nothing had to change.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
