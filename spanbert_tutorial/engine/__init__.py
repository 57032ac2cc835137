"""The machine room: training, snapshots, figures of a run, files of checkpoints. It knows nothing
of the chapters."""
