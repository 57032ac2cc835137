"""BERT, piece by piece: tokens, inputs, encoder, masking, sentence pairs. Chapters: `book/bert`."""
