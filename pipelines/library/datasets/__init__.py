"""The sample pictures and STL-10."""
