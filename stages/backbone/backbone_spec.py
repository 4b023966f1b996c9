"""The description of a backbone, backbone.json. Does not know Keras, so it is cheap to import."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from stages.datum.contract import StageError

_MOST_PIXELS = 1 << 30  # bytes of a batch: 32 pictures of 3,344 × 3,344 pixels
_MOST_DIMENSIONS = 1 << 20
MOST_BYTES = 1 << 16  # of backbone.json

MODEL_FILE = "backbone.keras"
SPEC_FILE = "backbone.json"
SCALE_FILE = "scale.json"  # see stages.quality.distance_scale
TEXT_FILE = "text-tower.keras"  # see stages.backbone.text_tower; most models have none
PUSH = "push one with: lookalike model push efficientnet-lite0"


@dataclass(frozen=True)
class WeightsOrigin:
    origin: str  # their origin, for people
    sha256: str  # 64 hex digits: of the file they were read from; for a .keras file, of the numbers alone


@dataclass(frozen=True)
class BackboneSpec:
    """The content of backbone.json. `sha256` is the model's identity, `model` in the tables."""

    name: str
    image_size: int  # side of its pictures, in pixels
    pooling: str  # "avg", "max", or "own" for a user's model
    dimension: int  # length of one vector
    batch: int  # pictures in every forward pass
    precision: str  # the type that its layers compute in: "float32"
    weights: WeightsOrigin
    sha256: str = ""  # 64 hex digits; filled in by save_backbone
    graph: bool = (
        False  # whether a graph gave the same vectors as Keras when it was pushed; see stages.backbone.embedder_factory
    )

    @property
    def described(self) -> str:
        """The backbone for people, such as "efficientnet-lite0 at 224 px"."""
        precision = "" if self.precision == "float32" else f" in {self.precision}"
        return f"{self.name} at {self.image_size} px{precision}"


def parse_spec(text: str | bytes) -> BackboneSpec:
    """Parses the content of backbone.json. Raises StageError for anything else."""
    try:
        if len(text) > MOST_BYTES:
            raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
        fields = json.loads(text)
        spec = BackboneSpec(**{**fields, "weights": WeightsOrigin(**fields["weights"])})
        numbers, words = (spec.image_size, spec.dimension, spec.batch), (spec.name, spec.pooling, spec.sha256)
        right = all(type(n) is int and n > 0 for n in numbers) and all(isinstance(word, str) for word in words)
        if not right or type(spec.graph) is not bool:
            raise ValueError("a field is of the wrong type")
        if spec.batch * spec.image_size**2 * 3 > _MOST_PIXELS or spec.dimension > _MOST_DIMENSIONS:
            raise ValueError("its pictures or vectors do not fit in memory")
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise StageError(
            f"{SPEC_FILE} in the repo models is not a description of a backbone ({error}); {PUSH}"
        ) from error
    return spec


def read_models(models: Path) -> tuple[Path, BackboneSpec]:
    """The file of the backbone in a directory of the repo models, which may be a pipe, and its description. Raises
    StageError if one is missing or is not valid."""
    paths = {path.name: path for path in models.iterdir()}
    if not {MODEL_FILE, SPEC_FILE} <= paths.keys():
        raise StageError(f"the repo models does not hold a backbone: {PUSH}")
    with paths[SPEC_FILE].open("rb") as file:
        return paths[MODEL_FILE], parse_spec(file.read(MOST_BYTES + 1))


def format_spec(spec: BackboneSpec) -> str:
    """The content of backbone.json; equal specs give equal text. It says nothing of a graph that has not been compared,
    as before there were any."""
    fields = asdict(spec)
    if not spec.graph:
        del fields["graph"]
    return json.dumps(fields, indent=2, sort_keys=True) + "\n"
