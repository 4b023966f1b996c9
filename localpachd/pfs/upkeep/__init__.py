"""Work that goes on by itself: finishing commits, checking them, and squashing old ones."""
