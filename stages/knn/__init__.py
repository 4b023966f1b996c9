"""Nearest-neighbour search among vectors. Knows no pictures, no files and no Pachyderm."""
