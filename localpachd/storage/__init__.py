"""Immutable bytes: chunks, file sets and globs; knows no commits."""
