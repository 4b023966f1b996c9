"""Handlers for the server itself: version, log levels, metadata, dumps."""
