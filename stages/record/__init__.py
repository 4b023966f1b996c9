"""A picture as a record: names, ids, hashes, sources, labels, and the part it belongs to. Opens no file."""
