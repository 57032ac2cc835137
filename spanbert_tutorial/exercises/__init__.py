"""Checks for the exercises, one file a chapter. A failed check names the likely mistake."""
