"""lookalike's use of a GPU, proven and measured on a bare machine that has one: README.md says how."""
