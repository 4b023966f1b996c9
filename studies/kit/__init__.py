"""The packages that single studies need, outside of the project's environment."""
