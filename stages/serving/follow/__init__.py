"""The library and the promoted classifier followed on Pachyderm, and opened as snapshots."""
