"""What several experiments measure in the same way: names, probes, frozen states, task scores."""
