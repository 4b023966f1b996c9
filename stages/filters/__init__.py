"""Filters of pictures by attributes: the columns, the language, and what an answer is narrowed with."""
