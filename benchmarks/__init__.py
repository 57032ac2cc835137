"""Measurements: of the engine, of a graphics card, of the model in the page."""
