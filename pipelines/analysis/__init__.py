"""Answers explained: their origin, their changes, and questions to the library as it was."""
