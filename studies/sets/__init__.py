"""Labelled sets of pictures, and the ways to turn them into vectors."""
