"""Commands that ask the library, and fetch its result sheets."""
