"""The messages of the API: one schema, and their types for mypy."""
