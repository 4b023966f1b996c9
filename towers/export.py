"""`python -m towers.export PRESET --out DIRECTORY|FILE.keras`: the towers of a model of KerasHub, OpenCLIP or ONNX
as files that `lookalike model push` takes. Needs the environment of requirements.lock."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import keras_hub
import numpy as np
from numpy.typing import NDArray

from stages.backbone import export_proof
from towers.onnx_model import has_onnx, read_onnx
from towers.open_clip import SETTINGS, read_model
from towers.plain import ModelSource, UnknownTowerError, original, plain
from towers.tokens import original_tokens, tokenizer_of
from towers.words import original_vectors, text_network

_TEXT_FILE = "text-tower.keras"  # that of stages.backbone.backbone_spec, which needs gRPC


class NotEqualError(Exception):
    """The rebuilt tower gives other vectors than the original, or the tokenizer other tokens."""


def hub_source(backbone: Any, converter: Any, origin: str, preprocessor: Any = None) -> ModelSource:
    """A model of KerasHub, whose own layers give its vectors. converter: the preset's image converter."""
    scale, offset = converter.scale, converter.offset
    pictures = original(backbone, scale, offset)
    return ModelSource(
        backbone, preprocessor, scale, offset, origin, pictures, lambda tokens: original_vectors(backbone, tokens)
    )


def read_source(preset: str, image_size: int | None = None) -> ModelSource:
    """The model of a directory of OpenCLIP or of ONNX files, or of a preset of KerasHub. Raises what these raise."""
    directory = Path(preset)
    if (directory / SETTINGS).is_file():
        return read_model(directory)
    if has_onnx(directory):
        return read_onnx(directory)
    side = {"image_shape": (image_size, image_size, 3)} if image_size else {}
    backbone = keras_hub.models.Backbone.from_preset(preset, **side)
    converter = keras_hub.layers.ImageConverter.from_preset(preset)
    preprocessor = None
    if hasattr(backbone, "get_text_embeddings"):
        family = type(backbone).__name__.removesuffix("Backbone")
        preprocessor = getattr(keras_hub.models, f"{family}Preprocessor").from_preset(preset)
    return hub_source(backbone, converter, f"KerasHub {keras_hub.__version__}: {preset}", preprocessor)


def export(source: ModelSource, name: str, path: Path) -> float:
    """Writes the image tower of a model to a .keras file, and returns the greatest distance between the vectors of the
    original and of the written file, as a share of their length.

    Raises NotEqualError, and writes nothing, if that is above the tolerance; UnknownTowerError if the backbone has no
    image tower that can be rebuilt.
    """
    model = plain(source, name)
    pictures = export_proof.pictures(model.input.shape[1])
    expected = source.pictures(pictures)
    apart = _written(model, pictures, expected, source.origin, path)
    export_proof.attach_proof(path, export_proof.ExportProof(source.origin, expected))
    return apart


def export_words(source: ModelSource, path: Path) -> float:
    """Writes the text tower of a model that has one, with its tokenizer, to a .keras file, and returns the distance as
    `export` does.

    Raises NotEqualError, and writes nothing, if the tokens of a text differ, or a vector by more than the tolerance;
    UnknownTowerError if it cannot be rebuilt.
    """
    tokenizer = tokenizer_of(source.preprocessor)
    tokens = original_tokens(source.preprocessor, export_proof.TEXTS)
    model = text_network(source.backbone, tokens.shape[1], "text")
    for text, theirs in zip(export_proof.TEXTS, tokens.tolist(), strict=True):
        ours = tokenizer.encode(text).ids
        if ours != theirs:
            raise NotEqualError(
                f"the rebuilt tokenizer of {source.origin} reads {text!r} as {ours}, the original as {theirs}: "
                "nothing is written"
            )
    expected = source.texts(tokens)
    apart = _written(model, tokens, expected, source.origin, path)
    seen = source.pictures(export_proof.pictures(source.backbone.vision_encoder.image_shape[0]))
    export_proof.attach_text_proof(path, export_proof.TextProof(source.origin, expected, seen), tokenizer.to_str())
    return apart


def _written(model: keras.Model, given: NDArray[Any], expected: NDArray[np.float32], origin: str, path: Path) -> float:
    """Writes the model, and returns how far the vectors of the written file are from the expected ones. Raises
    NotEqualError, and leaves no file, if that is too far."""
    model.save(path)
    rebuilt = keras.saving.load_model(path, compile=False, safe_mode=True)
    apart = export_proof.apart(expected, rebuilt.predict_on_batch(given))
    if not apart <= export_proof.TOLERANCE:
        path.unlink()
        raise NotEqualError(
            f"the rebuilt tower of {origin} differs from the original by {apart:.2%}: nothing is written"
        )
    return apart


def export_preset(preset: str, out: Path, image_size: int | None = None) -> list[str]:
    """Writes the image tower of a model to a .keras file, or with its text tower, if it has one, into a directory;
    returns lines on them for people. Leaves no file of a model of which one tower is refused. Raises as `read_source`,
    `export` and `export_words`."""
    source = read_source(preset, image_size)
    alone = out.suffix == ".keras"
    path = out if alone else out / f"{Path(preset).name}.keras"
    path.parent.mkdir(parents=True, exist_ok=True)
    apart = export(source, path.stem, path)
    said = [
        f"{path}: its vectors of {len(export_proof.pictures(8))} pictures differ from the original's by {apart:.1e}"
    ]
    if source.preprocessor is None:
        return said
    if alone:
        return [*said, "its text tower is not written: give a directory instead of a file to have both"]
    words = path.with_name(_TEXT_FILE)
    try:
        apart = export_words(source, words)
    except BaseException:
        path.unlink()
        raise
    count = len(export_proof.TEXTS)
    return [*said, f"{words}: its vectors of {count} texts differ from the original's by {apart:.1e}"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 1 with one line on stderr if the towers cannot be exported."""
    parser = argparse.ArgumentParser(prog="python -m towers.export", description=__doc__)
    parser.add_argument(
        "preset",
        help="dinov2_small, clip_vit_base_patch16, siglip_base_patch16_224, ..., or a directory of OpenCLIP or ONNX",
    )
    parser.add_argument(
        "--image-size", type=int, help="side of the pictures in pixels, for DINOv2 alone (a multiple of 14)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        help="the directory to write both towers to, or a .keras file for the image's",
    )
    given = parser.parse_args(arguments)
    try:
        said = export_preset(given.preset, given.out, given.image_size)
    except (UnknownTowerError, NotEqualError) as error:
        print(error, file=sys.stderr)
        return 1
    except Exception as error:  # errors of KerasHub and of its downloads have no common type
        print(f"{given.preset} cannot be loaded: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    print("\n".join(said))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
