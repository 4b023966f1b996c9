"""From logits to probabilities in a network: the temperature and the softmax, as its last layers."""

import keras


def with_probabilities(network: keras.Model, temperature: float) -> keras.Model:
    """The network, which gives logits (batch, L), with probabilities (batch, L) of the logits over the temperature."""
    divided = keras.layers.Rescaling(1 / temperature, name="temperature", dtype="float32")(network.outputs[0])
    given = keras.layers.Softmax(name="probabilities", dtype="float32")(divided)
    return keras.Model(network.inputs[0], given, name="classifier")
