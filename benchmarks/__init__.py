"""Side-by-side measurements, each beside a bare lower bound of the same run. Run from the repository's root."""
