"""Backbones as values and files, and their passes over pictures. Knows no library and no stage."""
