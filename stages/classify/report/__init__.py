"""Trainings in words and pages: the census, the model card, the report."""
