"""A small convolutional network on pixels, trained from random weights: for small pictures that photographs, which a
backbone knows, do not resemble, such as written characters.

Equal inputs give equal bits on one device and, on a processor, with one number of threads: kernels divide the sums of
convolutions among these. Of several devices it uses the first. TensorFlow only.
"""

from __future__ import annotations

import keras

from stages.classify.training import heads, trainer
from stages.classify.training.dataset import Dataset, DatasetRows
from stages.classify.training.trainer import Trainer
from stages.classify.training.training_loop import TrainingLoop
from stages.classify.training.training_parameters import ConvolutionalParameters, TrainingParameters
from stages.classify.training.validation import TrainingResult

_KERNEL = 5  # pixels of a side
_MOMENTUM = 0.9  # of means and variances: with Keras's 0.99 a short training ends before they have settled


def train(dataset: Dataset, parameters: TrainingParameters, chosen: ConvolutionalParameters) -> TrainingResult:
    """Trains a network for each fold and one on all training pictures, or one that leaves a single fold out.

    Raises Failure for a training that diverges, and if no fold can be left out.
    """
    side, labels, smoothing = dataset.origin.image_size, len(dataset.labels), parameters.label_smoothing
    trained = Trainer(lambda: network(side, labels, parameters, chosen), chosen, smoothing, trainer.devices()[:1])
    start = trained.state()

    def begin(_: int, __: DatasetRows) -> None:
        trained.restore(start)

    return TrainingLoop(dataset, parameters, chosen, trained, begin, once=not chosen.cross_validation).run()


def network(side: int, labels: int, parameters: TrainingParameters, chosen: ConvolutionalParameters) -> keras.Model:
    """The network with its first weights: uint8 RGB pictures (n, side, side, 3) in, logits (n, labels) out."""
    pictures = keras.Input((side, side, 3), dtype="uint8", name="pictures")
    x = keras.layers.Rescaling(1 / 127.5, -1, name="scaled")(pictures)
    for number, width in enumerate(chosen.filters, 1):
        first = keras.initializers.HeNormal(seed=parameters.seed + number)
        name = f"convolution_{number}"
        x = keras.layers.Conv2D(width, _KERNEL, 2, padding="same", use_bias=False, kernel_initializer=first, name=name)(
            x
        )
        x = keras.layers.BatchNormalization(momentum=_MOMENTUM, name=f"norm_{number}")(x)
        x = keras.layers.ReLU(name=f"relu_{number}")(x)
    x = keras.layers.Flatten(name="vector")(x)
    x = keras.layers.Dropout(chosen.dropout, seed=parameters.seed, name="dropout")(x)
    for layer in heads.layers(parameters, labels):
        x = layer(x)
    return keras.Model(pictures, x, name="network")
