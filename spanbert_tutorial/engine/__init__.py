"""Around the training loop: snapshots, metrics, files and processes. It knows nothing of BERT."""
