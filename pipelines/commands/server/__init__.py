"""Commands for a server on this machine, and the demo."""
