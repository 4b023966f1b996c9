"""The contract with Pachyderm: a datum in and out, its parameters, caches, progress and errors."""
