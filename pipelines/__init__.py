"""The control plane and the lookalike command: everything that talks to Pachyderm from outside."""
