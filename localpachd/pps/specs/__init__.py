"""Specifications of pipelines: parsed, filled with defaults, and validated."""
