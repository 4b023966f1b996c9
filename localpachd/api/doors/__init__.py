"""Interceptors around every call: admission, tokens, status codes, metrics."""
