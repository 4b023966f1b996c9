"""EfficientNet-Lite0 rebuilt in Keras is the network that Google trained: it classifies photographs correctly."""

import keras
import numpy as np
import pytest
from PIL import Image

from stages.efficientnet import POOLED, efficientnet_lite0, weights_file
from stages.torchfile import read_tensors

skimage_data = pytest.importorskip("skimage.data")

ESPRESSO, TRIPOD, CATS = {967}, {872}, {281, 282, 285}  # classes of ImageNet


def test_it_recognises_photographs() -> None:
    tensors = read_tensors(weights_file())
    model = efficientnet_lite0(224, weights_file())  # the size it was trained with
    features = keras.Model(model.input, model.get_layer(POOLED).output)
    for name, classes in {"coffee": ESPRESSO, "camera": TRIPOD, "chelsea": CATS}.items():
        picture = Image.fromarray(getattr(skimage_data, name)()).convert("RGB")
        side = min(picture.size)
        left, top = (picture.width - side) // 2, (picture.height - side) // 2
        square = picture.crop((left, top, left + side, top + side)).resize((224, 224), Image.Resampling.BICUBIC)
        feature = features.predict_on_batch(np.asarray(square)[None])[0]
        scores = tensors["_fc.weight"] @ feature + tensors["_fc.bias"]
        likelihood = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        assert likelihood.argmax() in classes, name
        assert likelihood[list(classes)].sum() > 0.75, name  # wrong padding or scaling would lose most of it
