"""Handlers of pfs, transactions and file sets."""
