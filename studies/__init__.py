"""Measurements that were made once, and can be made again: README.md lists them. Run them from the root of the
repository."""
