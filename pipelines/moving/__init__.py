"""A library moved to another server: its commits as a directory, and made again from that directory."""
