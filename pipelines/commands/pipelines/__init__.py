"""Commands for the pipelines: deployed, upgraded, watched and debugged."""
