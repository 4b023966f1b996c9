"""Checks of specifications before they reach a server: one module for each kind of flaw; `suite` runs all of them."""
