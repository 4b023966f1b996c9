"""Writes small towers with random weights as plain .keras files, and one in KerasHub's own layers: `small.py DIR`. Runs
in the environment of towers/requirements.lock."""

import sys
from pathlib import Path
from typing import Any

import keras_hub
import numpy as np

from towers.export import NotEqualError, export

SMALL = {"hidden_dim": 32, "num_layers": 2, "num_heads": 2, "intermediate_dim": 64}
TEXT = {**SMALL, "vocabulary_size": 64, "embedding_dim": 32}


class Converter:
    """ImageNet's colours, as in most presets."""

    scale = (0.0171, 0.0175, 0.0174)
    offset = (-2.12, -2.04, -1.8)


def dinov2(registers: int, swiglu: bool) -> Any:
    return keras_hub.models.DINOV2Backbone(
        patch_size=14,
        image_shape=(56, 56, 3),
        position_embedding_shape=(70, 70, 3),
        num_register_tokens=registers,
        use_swiglu_ffn=swiglu,
        **SMALL,
    )


def clip() -> Any:
    made = keras_hub.models.CLIPBackbone(
        keras_hub.models.CLIPVisionEncoder(patch_size=8, image_shape=(32, 32, 3), **SMALL),
        keras_hub.models.CLIPTextEncoder(**TEXT),
        projection_dim=24,
    )
    made.vision_encoder.embedding.position_ids.assign(np.arange(17)[None])  # as every preset has them
    return made


def siglip() -> Any:
    return keras_hub.models.SigLIPBackbone(
        keras_hub.models.SigLIPVisionEncoder(patch_size=8, image_shape=(32, 32, 3), **SMALL),
        keras_hub.models.SigLIPTextEncoder(**TEXT),
    )


def randomised(backbone: Any) -> Any:
    """Many weights begin as zeros or ones, which would hide that they are not copied."""
    lot = np.random.default_rng(1)
    for variable in backbone.weights:
        if "int" not in str(variable.dtype):
            variable.assign(np.asarray(variable) + lot.normal(0, 0.05, variable.shape).astype(np.float32))
    return backbone


def main(directory: Path) -> None:
    towers = {"dinov2": dinov2(0, False), "registers": dinov2(4, True), "clip": clip(), "siglip": siglip()}
    for name, backbone in towers.items():
        apart = export(randomised(backbone), Converter, name, f"a small {name}", directory / f"{name}.keras")
        assert apart < 1e-5, (name, apart)
    towers["dinov2"].save(directory / "foreign.keras")

    backbone = dinov2(0, False)
    backbone.encoder.layers[0].drop_path = lambda x, **_: 2.0 * x  # nothing that the rebuilt tower knows of
    try:
        export(backbone, Converter, "other", "a changed tower", directory / "other.keras")
    except NotEqualError:
        assert not (directory / "other.keras").exists()
    else:
        raise AssertionError("a tower that differs was written")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
