"""Results of `data/results/` as tests look at them."""

import json
from typing import Any

from research.comparisons import read
from spanbert_tutorial.engine.files import data_path


def kept(name: str, condition: str = "", **which: float) -> Any:
    """The values of one condition, nested as the measures say: `a/b` is ["a"]["b"], and numbers or
    steps from 0 or 1 on are places of a list. which: a run or a fine-tuning."""
    rows = read(name)
    rows = rows[rows.condition == condition]
    for column in ("run", "fine_tuning"):
        rows = rows[rows[column].isna() if column not in which else rows[column] == which[column]]
    tree: dict[str, Any] = {}
    for measure, step, value in zip(rows.measure, rows.step, rows.value, strict=True):
        *path, last = [*measure.split("/"), *([step] if step else [])]
        inner = tree
        for part in path:
            inner = inner.setdefault(part, {})
        inner[last] = int(value) if value % 1 == 0 else value
    return _lists(tree)


def settings(name: str) -> dict:
    """What stands beside the values."""
    return json.loads(data_path("results", f"{name}.settings.json").read_text(encoding="utf-8"))


def _lists(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    inner = {name: _lists(part) for name, part in tree.items()}
    return list(inner.values()) if all(map(str.isdecimal, inner)) else inner
