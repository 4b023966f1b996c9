"""Labelled pictures, a classifier trained on them, and its choice. Knows no stage, no Pachyderm and no HTTP."""
