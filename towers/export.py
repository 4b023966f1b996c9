"""`python -m towers.export PRESET --out FILE.keras`: an image tower of KerasHub as a file that `lookalike model push`
takes. Needs the environment of requirements.lock."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import keras
import keras_hub

from stages.backbone import export_proof
from towers.plain import UnknownTowerError, original, plain


class NotEqualError(Exception):
    """The rebuilt tower gives other vectors than the original."""


def export(backbone: Any, converter: Any, name: str, origin: str, path: Path) -> float:
    """Writes the image tower of a backbone to a .keras file, and returns the greatest distance between the vectors of
    the original and of the written file, as a share of their length.

    converter: the preset's image converter. Raises NotEqualError, and writes nothing, if that is above the tolerance;
    UnknownTowerError if the backbone has no image tower that can be rebuilt.
    """
    scale, offset = converter.scale, converter.offset
    model = plain(backbone, scale, offset, name)
    model.save(path)
    pictures = export_proof.pictures(model.input.shape[1])
    expected = original(backbone, scale, offset)(pictures)
    rebuilt = keras.saving.load_model(path, compile=False, safe_mode=True)
    apart = export_proof.apart(expected, rebuilt.predict_on_batch(pictures))
    if not apart <= export_proof.TOLERANCE:
        path.unlink()
        raise NotEqualError(
            f"the rebuilt tower of {origin} differs from the original by {apart:.2%}: nothing is written"
        )
    export_proof.attach_proof(path, export_proof.ExportProof(origin, expected))
    return apart


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns the exit status: 1 with one line on stderr if the tower cannot be exported."""
    parser = argparse.ArgumentParser(prog="python -m towers.export", description=__doc__)
    parser.add_argument("preset", help="dinov2_small, clip_vit_base_patch16, siglip_base_patch16_224, or another one")
    parser.add_argument(
        "--image-size", type=int, help="side of the pictures in pixels, for DINOv2 alone (a multiple of 14)"
    )
    parser.add_argument("--out", type=Path, required=True, help="the .keras file to write")
    given = parser.parse_args(arguments)
    if given.out.suffix != ".keras":
        parser.error("the name of the file must end in .keras")
    side = {"image_shape": (given.image_size, given.image_size, 3)} if given.image_size else {}
    try:
        backbone = keras_hub.models.Backbone.from_preset(given.preset, **side)
        converter = keras_hub.layers.ImageConverter.from_preset(given.preset)
        origin = f"KerasHub {keras_hub.__version__}: {given.preset}"
        apart = export(backbone, converter, given.out.stem, origin, given.out)
    except (UnknownTowerError, NotEqualError) as error:
        print(error, file=sys.stderr)
        return 1
    except Exception as error:  # errors of KerasHub and of its downloads have no common type
        print(f"{given.preset} cannot be loaded: {' '.join(str(error).split())}", file=sys.stderr)
        return 1
    print(
        f"{given.out}: its vectors of {len(export_proof.pictures(8))} pictures "
        f"differ from the original's by {apart:.1e}"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
