"""BERT's relatives: each a small, visible difference from `bert`. Chapters: `book/relatives/`."""
