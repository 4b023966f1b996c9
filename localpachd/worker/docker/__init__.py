"""Runs datums in containers of an engine that is called over its socket. Knows neither pipelines nor commits."""
