"""People's tables of pictures, from their files to the repo `attributes`."""
