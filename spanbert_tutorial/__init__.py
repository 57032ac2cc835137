"""SpanBERT, from the ground up: the code that the book's chapters build and import.

One chapter, one module, the same name. Which module may import which is told in README.md, "How the
house is built".
"""

__version__ = "0.1.0"
