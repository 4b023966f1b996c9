"""EfficientNet-Lite rebuilt in Keras is the family that Google trained: each classifies photographs correctly."""

from pathlib import Path

import keras
import numpy as np
import pytest
from PIL import Image

from stages.backbone.efficientnet import LITE, POOLED, efficientnet_lite
from stages.backbone.torch_file import read_tensors
from stages.datum.contract import StageError

skimage_data = pytest.importorskip("skimage.data")

ESPRESSO, TRIPOD, CATS = {967}, {872}, {281, 282, 285}  # classes of ImageNet
PHOTOGRAPHS = {"coffee": ESPRESSO, "camera": TRIPOD, "chelsea": CATS}
# The likelihood of the likeliest class of each photograph by efficientnet-lite-pytorch 0.1.0, the implementation that
# these weights were converted for, on PyTorch. Its 1280 features differ from ours by 1.4 millionths.
REFERENCE = {
    ("lite0", 224): (0.9398353, 0.948913, 0.38463262),
    ("lite1", 240): (0.62538475, 0.7532673, 0.516602),
    ("lite2", 260): (0.8965026, 0.770271, 0.60181755),
}


@pytest.mark.parametrize(
    ("name", "size"),
    [pytest.param(*each, marks=[] if each[0] == "lite0" else [pytest.mark.only_in_all]) for each in REFERENCE],
)
def test_it_classifies_photographs_as_the_original(name: str, size: int) -> None:
    lite = LITE[f"efficientnet-{name}"]
    tensors = read_tensors(lite.weights_file())
    model = efficientnet_lite(lite, size, lite.weights_file())  # the size it was trained with
    features = keras.Model(model.input, model.get_layer(POOLED).output)
    for (photograph, classes), likeliest in zip(PHOTOGRAPHS.items(), REFERENCE[name, size], strict=True):
        picture = Image.fromarray(getattr(skimage_data, photograph)()).convert("RGB")
        side = min(picture.size)
        left, top = (picture.width - side) // 2, (picture.height - side) // 2
        square = picture.crop((left, top, left + side, top + side)).resize((size, size), Image.Resampling.BICUBIC)
        feature = features.predict_on_batch(np.asarray(square)[None])[0]
        scores = tensors["_fc.weight"] @ feature + tensors["_fc.bias"]
        likelihood = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
        assert likelihood.argmax() in classes, photograph
        assert likelihood.max() == pytest.approx(likeliest, abs=1e-4), photograph


@pytest.mark.parametrize(("network", "other"), [("lite0", "lite1"), ("lite1", "lite0"), ("lite2", "lite1")])
def test_the_weights_of_another_one_are_refused(network: str, other: str) -> None:
    weights: Path = LITE[f"efficientnet-{other}"].weights_file()
    with pytest.raises(StageError, match="it is of another network"):
        efficientnet_lite(LITE[f"efficientnet-{network}"], 64, weights)
