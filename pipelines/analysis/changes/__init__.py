"""The changes of a library and of its answers: its history, and two moments compared."""
