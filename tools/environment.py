"""The environment in which every notebook of the book runs: in the tests, when it is executed anew,
on a check."""

import os
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
CHROMIUM_PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
)


def prepare(import_from: Path = ROOT) -> None:
    """Set the variables, of this process and so of every kernel that it starts, that make a
    notebook's outputs the same on every machine.

    `import_from` is the folder that `spanbert_tutorial` is imported from. Other packages come from
    the folder that SPANBERT_TUTORIAL_PACKAGES names, where it has them (`make older`).
    """
    folders = [str(import_from), os.environ.get("SPANBERT_TUTORIAL_PACKAGES", "")]
    os.environ |= {
        "PYTHONPATH": os.pathsep.join(filter(None, folders)),
        # one thread unless asked: sums in one order, and two notebooks at a time on two cores
        "OMP_NUM_THREADS": os.environ.get("SPANBERT_TUTORIAL_THREADS", "1"),
        # the stored outputs are those of a CPU; asserts may be tried on a graphics card, too
        **({} if os.environ.get("SPANBERT_TUTORIAL_CARD") else {"CUDA_VISIBLE_DEVICES": ""}),
        "SPANBERT_TUTORIAL_STATIC": "1",  # figures without a live kernel behind them
        # plots as SVG, in the colors of the page
        "MPLBACKEND": "module://spanbert_tutorial.figures.plots",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "DISABLE_SAFETENSORS_CONVERSION": "1",
    }


def warm_up() -> None:
    """Let matplotlib list the machine's fonts now: on a fresh machine it would say so inside the
    first notebook."""
    import matplotlib.font_manager  # noqa: F401


def find_chromium() -> str | None:
    """Path of a Chromium or Chrome on this machine, None where there is none."""
    found = [shutil.which(name) for name in CHROMIUM_NAMES]
    found += [place for place in CHROMIUM_PLACES if Path(place).exists()]
    return next((path for path in found if path), None)
