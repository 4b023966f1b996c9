"""The `lookalike` command line: arguments in, one call, words out."""
