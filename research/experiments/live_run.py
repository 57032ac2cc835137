"""The run that the chapter repeats before the reader's eyes. Chapter:
`book/spanbert/pretraining_spanbert`."""

from dataclasses import replace

from research.experiments import token_vs_span
from research.grid import CURVES
from spanbert_tutorial.pretraining.presets import RUNS

ARMS = ("span+sbo",)
SEEDS = 1
SETTINGS = {"run": replace(RUNS["tiny"], steps=700), **CURVES}
one = token_vs_span.one  # trained and measured as there
