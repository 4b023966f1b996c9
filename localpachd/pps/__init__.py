"""Pipelines, jobs and datums: what should run."""
