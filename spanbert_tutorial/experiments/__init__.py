"""What takes longer than a chapter may: one file for each experiment, listed in `table` and kept in `data/results/`."""
