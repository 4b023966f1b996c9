"""The backbones that have names, as data: `lookalike model list` and the error of an unknown name. Knows no Keras.

Licences are those of the weights, as the documentation of keras.applications and the packages state them.
"""

import difflib
from dataclasses import dataclass
from typing import Literal

PixelPreparation = Literal["lite", "raw", "tf", "torch", "caffe"]


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A backbone by name.

    image_size: side of the pictures that it was trained on, in pixels. dimension: length of a vector. megabytes: size
    of the file of weights. network: its name in keras.applications; "" for those whose weights come in packages.
    pixels: the preparation of pixels that it was trained with, "raw" if its own first layers do it. pooling: of the
    last maps; average pooling is followed by scaling to length 1. note: what tells it from another one of the same
    network, or "". rate: pictures a second at 224 px on two cores.
    precision: of the nearest picture, see MEASURED; None where the weights could not be had.
    """

    name: str
    image_size: int
    dimension: int
    megabytes: int
    licence: str
    pixels: PixelPreparation
    network: str = ""
    pooling: Literal["avg", "max"] = "avg"
    rate: int | None = None
    precision: float | None = None
    note: str = ""

    @property
    def weights(self) -> str:
        """The place that the weights come from."""
        return "internet" if self.network else "installed"


_APACHE, _MIT, _BSD, _CC = "Apache-2.0", "MIT", "BSD-3-Clause", "CC-BY-4.0"

_AS_PUBLISHED = "that of the original experiment: takes pixels as they are, and the maximum of each map"
_AS_TRAINED = "takes pixels as its weights were trained on them (blue first, channel means subtracted), averages maps"

_ENTRIES = (
    CatalogueEntry("efficientnet-lite0", 224, 1280, 19, _APACHE, "lite", rate=180, precision=0.944),
    CatalogueEntry("efficientnet-lite1", 240, 1280, 22, _APACHE, "lite", rate=130, precision=0.952),
    CatalogueEntry("efficientnet-lite2", 260, 1280, 25, _APACHE, "lite", rate=120, precision=0.944),
    CatalogueEntry("resnet50", 224, 2048, 94, _MIT, "raw", "ResNet50", "max", rate=46, note=_AS_PUBLISHED),
    CatalogueEntry("resnet50-caffe", 224, 2048, 94, _MIT, "caffe", "ResNet50", rate=46, note=_AS_TRAINED),
    CatalogueEntry("resnet101", 224, 2048, 171, _MIT, "caffe", "ResNet101", rate=25),
    CatalogueEntry("resnet152", 224, 2048, 233, _MIT, "caffe", "ResNet152", rate=16),
    CatalogueEntry("resnet50v2", 224, 2048, 94, _BSD, "tf", "ResNet50V2", rate=50),
    CatalogueEntry("resnet101v2", 224, 2048, 171, _BSD, "tf", "ResNet101V2", rate=26),
    CatalogueEntry("resnet152v2", 224, 2048, 233, _BSD, "tf", "ResNet152V2", rate=16),
    CatalogueEntry("vgg16", 224, 512, 59, _CC, "caffe", "VGG16", rate=15),
    CatalogueEntry("vgg19", 224, 512, 80, _CC, "caffe", "VGG19", rate=12),
    CatalogueEntry("xception", 299, 2048, 83, _MIT, "tf", "Xception", rate=34),
    CatalogueEntry("inceptionv3", 299, 2048, 87, _APACHE, "tf", "InceptionV3", rate=65),
    CatalogueEntry("inceptionresnetv2", 299, 1536, 217, _APACHE, "tf", "InceptionResNetV2", rate=27),
    CatalogueEntry("densenet121", 224, 1024, 28, _BSD, "torch", "DenseNet121", rate=43),
    CatalogueEntry("densenet169", 224, 1664, 51, _BSD, "torch", "DenseNet169", rate=36),
    CatalogueEntry("densenet201", 224, 1920, 73, _BSD, "torch", "DenseNet201", rate=28),
    CatalogueEntry("mobilenet", 224, 1024, 13, _APACHE, "tf", "MobileNet", rate=180),
    CatalogueEntry("mobilenetv2", 224, 1280, 9, _APACHE, "tf", "MobileNetV2", rate=190),
    CatalogueEntry("mobilenetv3small", 224, 576, 4, _APACHE, "raw", "MobileNetV3Small", rate=650),
    CatalogueEntry("mobilenetv3large", 224, 960, 12, _APACHE, "raw", "MobileNetV3Large", rate=230),
    CatalogueEntry("nasnetmobile", 224, 1056, 17, _APACHE, "tf", "NASNetMobile", rate=130),
    CatalogueEntry("nasnetlarge", 331, 4032, 340, _APACHE, "tf", "NASNetLarge", rate=15),
    CatalogueEntry("efficientnetb0", 224, 1280, 16, _APACHE, "raw", "EfficientNetB0", rate=120),
    CatalogueEntry("efficientnetb1", 240, 1280, 26, _APACHE, "raw", "EfficientNetB1", rate=84),
    CatalogueEntry("efficientnetb2", 260, 1408, 31, _APACHE, "raw", "EfficientNetB2", rate=78),
    CatalogueEntry("efficientnetb3", 300, 1536, 43, _APACHE, "raw", "EfficientNetB3", rate=58),
    CatalogueEntry("efficientnetb4", 380, 1792, 71, _APACHE, "raw", "EfficientNetB4", rate=42),
    CatalogueEntry("efficientnetb5", 456, 2048, 114, _APACHE, "raw", "EfficientNetB5", rate=29),
    CatalogueEntry("efficientnetb6", 528, 2304, 164, _APACHE, "raw", "EfficientNetB6", rate=22),
    CatalogueEntry("efficientnetb7", 600, 2560, 256, _APACHE, "raw", "EfficientNetB7", rate=16),
    CatalogueEntry("efficientnetv2b0", 224, 1280, 24, _APACHE, "raw", "EfficientNetV2B0", rate=130),
    CatalogueEntry("efficientnetv2b1", 240, 1280, 28, _APACHE, "raw", "EfficientNetV2B1", rate=100),
    CatalogueEntry("efficientnetv2b2", 260, 1408, 35, _APACHE, "raw", "EfficientNetV2B2", rate=90),
    CatalogueEntry("efficientnetv2b3", 300, 1536, 52, _APACHE, "raw", "EfficientNetV2B3", rate=68),
    CatalogueEntry("efficientnetv2s", 384, 1280, 81, _APACHE, "raw", "EfficientNetV2S", rate=41),
    CatalogueEntry("efficientnetv2m", 480, 1280, 213, _APACHE, "raw", "EfficientNetV2M", rate=24),
    CatalogueEntry("efficientnetv2l", 480, 1280, 471, _APACHE, "raw", "EfficientNetV2L", rate=12),
    CatalogueEntry("convnext_tiny", 224, 768, 111, _MIT, "raw", "ConvNeXtTiny", rate=4),
    CatalogueEntry("convnext_small", 224, 768, 198, _MIT, "raw", "ConvNeXtSmall"),
    CatalogueEntry("convnext_base", 224, 1024, 350, _MIT, "raw", "ConvNeXtBase"),
    CatalogueEntry("convnext_large", 224, 1536, 785, _MIT, "raw", "ConvNeXtLarge"),
    CatalogueEntry("convnext_xlarge", 224, 2048, 1393, _MIT, "raw", "ConvNeXtXLarge"),
)

MEASURED = (
    "speed: pictures of 224 px a second on two idle cores, forward pass alone, where it was measured",
    "precision: precision@1 of the sample queries at 224 px, where the weights are installed; see docs/quality.md",
)
"""The measurements of `rate` and `precision`, in words."""

CATALOGUE = {entry.name: entry for entry in _ENTRIES}
"""All of them by name, those whose weights are installed first."""

INSTALLED = tuple(entry.name for entry in _ENTRIES if not entry.network)


def find(name: str) -> CatalogueEntry | None:
    """The backbone of that name, written in any case, with or without hyphens and underscores."""
    return _BY_LETTERS.get(_letters(name))


def unknown(name: str) -> str:
    """The error of a name that is neither a backbone's nor a file's, with the backbones of similar names."""
    alike = difflib.get_close_matches(_letters(name), _BY_LETTERS, n=4)
    meant = f"did you mean {', '.join(_BY_LETTERS[each].name for each in alike)}? " if alike else ""
    return (
        f"{name or 'an empty text'} is neither the name of a backbone nor a file: {meant}"
        "`lookalike model list` shows all names"
    )


def _letters(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "")


_BY_LETTERS = {_letters(entry.name): entry for entry in _ENTRIES}
