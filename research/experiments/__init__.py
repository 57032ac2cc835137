"""The experiments, one file each, listed in `research.table` and kept in `data/results/`."""
