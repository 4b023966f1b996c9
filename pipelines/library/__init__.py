"""Pictures, queries, models and results: from paths on disk to files in the repos, and back to people's eyes."""
