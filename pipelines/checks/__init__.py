"""Checks of specifications before they meet a server: each module looks for one kind of flaw, `preflight` asks all."""
