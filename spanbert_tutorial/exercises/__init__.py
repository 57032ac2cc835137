"""Checks for the exercises, one module a part. A failed check names the likely mistake."""
