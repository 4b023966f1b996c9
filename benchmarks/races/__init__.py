"""Measurements of single stages, beside other programs and bare products."""
