"""Runs datums, as processes or in containers. Knows neither pipelines nor commits."""
