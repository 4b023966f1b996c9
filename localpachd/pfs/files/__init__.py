"""File sets that clients hold, streams of changes, and copies out of commits."""
