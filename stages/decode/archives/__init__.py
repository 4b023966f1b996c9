"""Zip, tar and tar.gz archives, member by member. Knows nothing of the members' content."""
