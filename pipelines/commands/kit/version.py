"""The version, from the installed package."""

from importlib import metadata

TEXT = f"lookalike {metadata.version('lookalike')}"
