"""The engine: training loop, snapshots, metrics, files and processes. It knows nothing of BERT."""
