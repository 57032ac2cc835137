"""What SpanBERT changes: spans, boundaries, one segment. Chapters: `book/spanbert`."""
