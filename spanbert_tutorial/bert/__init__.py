"""BERT, token by token: tokens, inputs, encoder, masking, sentence pairs. Chapters: `book/bert`."""
