"""Repos, branches, commits and files: what data is when."""
