"""Commands that serve over HTTP, here or as a pipeline."""
