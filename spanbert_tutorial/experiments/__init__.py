"""Experiments that take longer than a chapter may; each is run by one command and kept in `data/results/`."""
