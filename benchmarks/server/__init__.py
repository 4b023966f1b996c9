"""Measurements of localpachd, through its API."""
