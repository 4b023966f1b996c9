"""Measurements, each beside a bare lower bound of the same run. Run them from the root of the repository."""
