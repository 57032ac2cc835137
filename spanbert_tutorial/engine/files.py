"""Files: where the data of this project lie (beside the package in a clone, inside it in an installed wheel).
"""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def data_path(*parts: str) -> Path:
    """Path of a file or folder under `data/`, e.g. `data_path("almanac", "documents.jsonl.xz")`.

    Raises FileNotFoundError when it exists in neither place.
    """
    places = [PACKAGE / "data", PACKAGE.parent / "data"]
    for place in places:
        if place.joinpath(*parts).exists():
            return place.joinpath(*parts)
    wanted = "/".join(parts)
    raise FileNotFoundError(f"{wanted} is neither in {places[0]} nor in {places[1]}: reinstall the package.")
