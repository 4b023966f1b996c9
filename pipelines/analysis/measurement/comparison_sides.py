"""The two sides of a comparison: their models and metrics as they are named, made or fetched. Computes no answers."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.analysis.time_travel import past_library
from pipelines.analysis.time_travel.stage_workbench import StageWorkbench
from pipelines.client.commit_sets import commit_at
from pipelines.client.commit_tree import CommitTree
from pipelines.errors import LookalikeError
from pipelines.library import backbone_push
from stages.backbone.backbone_spec import MODEL_FILE, SPEC_FILE, BackboneSpec
from stages.backbone.catalogue import find, unknown
from stages.datum.text_format import visible

METRICS = ("euclidean", "cosine")
DEPLOYED = "deployed"
"""The name of the deployed model."""

_COMMIT = re.compile(r"[0-9a-f]{4,32}|[\w-]+@[\w^~.-]+")


@dataclass(frozen=True, slots=True)
class ComparisonSide:
    """One side as it was named: a model and a metric."""

    model: str
    metric: str


@dataclass(frozen=True, slots=True)
class SideModel:
    """A backbone: as it was named, its description, the directory of its files, and the commit of `backbone_push` that
    it is from, "" for one that was made here."""

    named: str
    spec: BackboneSpec
    directory: Path
    commit: str


def choices(model: Sequence[str], metric: Sequence[str], deployed: str) -> tuple[ComparisonSide, ComparisonSide]:
    """The sides a and b. One model or metric alone is compared with the deployed one; `deployed`: that metric.

    Raises LookalikeError for more than two of either, an unknown metric, or sides that are named alike.
    """
    for each in metric:
        if each not in METRICS:
            raise LookalikeError(f"{visible(each)!r} is not a valid metric: choose {' or '.join(METRICS)}")
    for what, given in (("model", model), ("metric", metric)):
        if len(given) > 2:
            raise LookalikeError(f"--{what} is given {len(given)} times: two sides can be compared, so give it twice")
    sides = zip(_both(model, DEPLOYED, len(metric) == 2), _both(metric, deployed, len(model) == 2), strict=True)
    a, b = (ComparisonSide(*each) for each in sides)
    if a == b:
        raise LookalikeError(
            f"both sides are {a.model} with {a.metric}: name two models, or two metrics, or one that is not deployed"
        )
    return a, b


def _both(given: Sequence[str], deployed: str, other: bool) -> tuple[str, str]:
    """The values of both sides. `other`: the other option tells the sides apart, so that one value is for both."""
    if not given:
        return deployed, deployed
    if len(given) == 2:
        return given[0], given[1]
    return (given[0], given[0]) if other else (deployed, given[0])


@dataclass(frozen=True, slots=True)
class DeployedLibrary(StageWorkbench):
    """The deployed library as far as it concerns models. Made and fetched ones go into `scratch`."""

    @property
    def image_size(self) -> int:
        """The side of its pictures in pixels."""
        return int(self.past.environments["preprocess"]["IMAGE_SIZE"])

    def deployed(self) -> SideModel:
        """The model that the library's answers are from."""
        return self._of_commit(DEPLOYED, self.past.id)

    def model(self, named: str) -> SideModel:
        """The model of a name, a .keras file, or a commit of the repo `backbone_push`. Raises LookalikeError if there
        is no such model, or it cannot be made."""
        if named == DEPLOYED:
            return self.deployed()
        if find(named) is not None or Path(named).is_file():
            directory = self._directory()
            size = [f"--image-size={self.image_size}"] if find(named) is not None else []
            spec, _ = backbone_push.make(named, size, directory)
            return SideModel(named, spec, directory, "")
        if _COMMIT.fullmatch(named):
            return self._of_commit(named, self.connection.retry(commit_at, self.connection, named))
        raise LookalikeError(
            f"{unknown(visible(named))}; a commit of models is named by its id (`lookalike commits models`)"
        )

    def files(self, model: SideModel) -> Path:
        """The directory with both files of a model; those of a commit are fetched."""
        if model.commit and not (model.directory / MODEL_FILE).exists():
            tree = CommitTree(self.connection, "models", model.commit)
            for each in tree.entries("/*"):
                if each.name in (MODEL_FILE, SPEC_FILE):
                    tree.place(self.store, each, model.directory / each.name)
        return model.directory

    def _of_commit(self, named: str, commit: str) -> SideModel:
        tree, spec = past_library.backbone(CommitTree.at(self.connection, "models", commit), commit)
        return SideModel(named, spec, self._directory(), tree.commit)

    def _directory(self) -> Path:
        place = self.scratch / "models" / str(len(list((self.scratch / "models").glob("*"))))
        place.mkdir(parents=True)
        return place


def environment(
    environments: Mapping[str, Mapping[str, str]], side: ComparisonSide, size: int
) -> dict[str, dict[str, str]]:
    """The variables of all pipelines for a side: those deployed, with its metric and the size of its pictures."""
    found = {name: dict(values) for name, values in environments.items()}
    for values in found.values():
        if "METRIC" in values:
            values["METRIC"] = side.metric
        if "IMAGE_SIZE" in values:
            values["IMAGE_SIZE"] = str(size)
    return found
