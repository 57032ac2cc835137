"""One module for each long command of `python -m spanbert_tutorial`. Chapter:
`book/spanbert/pretraining_spanbert`."""
