"""The library measured by the opt-in pipelines: copies in it, and its answers by labels."""
