"""Figures of the chapters: token strips, explorers, attention maps, loss curves."""
