"""Repos and pipelines created or updated from specifications, and the settings of those deployed."""
