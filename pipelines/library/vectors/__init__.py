"""Vectors that people bring, from their files to the repo `vectors`."""
