"""What stands behind the evidence pages: the harness, the measurements that experiments share, and
in `experiments` one file each."""
