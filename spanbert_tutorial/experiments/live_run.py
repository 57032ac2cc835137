"""The run that the chapter repeats before the reader's eyes. Chapter: `book/spanbert/pretraining_spanbert`."""

from dataclasses import replace

from spanbert_tutorial import runs
from spanbert_tutorial.experiments import token_vs_span
from spanbert_tutorial.experiments.results import CURVES

ARM, ARMS, SEEDS = "objective", ("span+sbo",), 1
SETTINGS = {"run": replace(runs.RUNS["tiny"], steps=700), **CURVES}
one = token_vs_span.one  # trained and measured as there
