"""A question answered from one snapshot of the library and of the model. Knows no HTTP."""
