"""A library moved to another server: its commits as one tar, and made again from it."""
