"""Commands that change the library, show it, or move it."""
