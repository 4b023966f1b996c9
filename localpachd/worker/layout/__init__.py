"""Lays out `/pfs` for a datum and collects its output. Knows neither processes nor containers."""
