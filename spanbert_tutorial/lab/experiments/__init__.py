"""The experiments, one file each, listed in `lab.table` and kept in `data/results/`."""
