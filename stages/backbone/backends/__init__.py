"""The backends of Keras. The module of each has `prepare(memory) -> None`, which applies the settings of GPU memory and
makes results repeatable; `gpus() -> list[str]`, the names of the GPUs that it computes on; and `forward(model) ->
ForwardPass`, the pass of a model for batches of one shape. One alone is imported in a process."""
