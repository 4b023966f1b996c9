"""The group of commands `classify`."""
