"""Pre-training: objectives, batches, the model with its heads, baselines, checkpoints, runs.
Chapters: `book/bert/pretraining` and `book/spanbert/pretraining_spanbert`."""
