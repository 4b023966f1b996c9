"""Image towers of KerasHub as .keras files of Keras's own layers. Runs in an environment of its own, see README.md."""
