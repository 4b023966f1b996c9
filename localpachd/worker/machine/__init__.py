"""Runs datums as processes of this machine. Knows neither pipelines nor commits."""
