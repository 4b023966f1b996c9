"""Handlers of pps, logs and workers."""
