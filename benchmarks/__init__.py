"""Measurements of the engine, kept in `data/results/`: `python -m benchmarks.NAME OUTPUT.json`."""
