"""Runs datums as processes; knows no pipelines."""
