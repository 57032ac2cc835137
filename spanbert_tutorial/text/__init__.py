"""Text: documents from files or the hub, split into sentences and encoded once. Chapter:
`book/spanbert/single_sequence`."""
