"""Lays out `/pfs` and reads back what is left in it. Knows neither processes nor containers."""
