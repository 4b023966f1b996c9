"""Owns the search for nearest neighbours among vectors. Knows no pictures, no files and no Pachyderm."""
