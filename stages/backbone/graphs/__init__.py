"""Backbones as graphs of TensorFlow's operations, made from their files run without its Python and Keras."""
