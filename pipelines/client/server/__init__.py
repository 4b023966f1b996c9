"""Reaching a server: contexts, the open connection, its failures, and a localpachd on this machine."""
