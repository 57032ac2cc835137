"""What SpanBERT changes: spans, boundaries, one segment. Chapters: `book/spanbert`."""

from spanbert_tutorial.spanbert import span_masking_batch  # noqa: F401, registers the fast way
