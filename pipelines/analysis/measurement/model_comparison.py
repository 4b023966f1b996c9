"""Two models or metrics side by side on the library's labelled pictures. The deployed side is the pipelines' output; of
the other, what differs is computed here, on the files of the same commit set. Nothing is written to the server."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.analysis.measurement import comparison_sides
from pipelines.analysis.measurement.comparison_sides import ComparisonSide, DeployedLibrary, SideModel
from pipelines.analysis.stage_runs import StageDatum, StageInput, kept_files
from pipelines.analysis.time_travel.past_library import LIBRARY, PastLibrary
from pipelines.analysis.time_travel.recomputation import RecomputedLibrary
from pipelines.analysis.time_travel.stage_workbench import StepDisplay
from pipelines.client.backbones import vector_time
from pipelines.client.commit_tree import CommitTree
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library import result_sheets
from pipelines.specifications import optional_specs, pipeline_specs
from stages.datum.file_cache import FileCache
from stages.datum.stage_version import STAGE
from stages.datum.text_format import counted
from stages.files.tables.index_table import TABLE
from stages.files.thumbnail_files import DIRECTORY

_MEASURES = "evaluate"
_SOURCES = ("images", "models", "labels")
_SHOWN = 256 << 20
"""Most bytes of the index that are fetched for the pictures on the page."""


@dataclass(frozen=True, slots=True)
class ModelComparison:
    """The outcome: the values of stages.quality.ranking_comparison, and the directory with comparison.json and
    index.html."""

    found: Mapping[str, Any]
    directory: Path


def compare(
    connection: Connection, model: Sequence[str], metric: Sequence[str], to: Path, steps: StepDisplay
) -> ModelComparison:
    """Compares two sides (see `comparison_sides.choices`) on the newest evaluation, and writes the report to a
    directory below `to`. Raises LookalikeError, with the way out, if there is no evaluation or a side cannot be
    computed."""
    with kept_files() as (store, scratch):
        comparison = connection.retry(_Comparison.of, connection, store, scratch, steps)
        chosen = comparison_sides.choices(model, metric, comparison.metric)
        models = {each.model: comparison.model(each.model) for each in chosen}
        if len({(models[each.model].spec.sha256, each.metric) for each in chosen}) == 1:
            raise LookalikeError(
                f"{chosen[0].model} and {chosen[1].model} are the same model: name two models, or two metrics"
            )
        evaluated = [
            comparison.evaluated(each, models[each.model], scratch / name)
            for each, name in zip(chosen, "ab", strict=True)
        ]
        directory = to / result_sheets.directory_name(_title(chosen))
        found = comparison.compared(evaluated, directory)
    return ModelComparison(found, directory)


@dataclass(frozen=True, slots=True)
class _Evaluated:
    """A side with the directory of its rankings, and what the report says about it."""

    directory: Path
    about: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Comparison(DeployedLibrary):
    """The library that is compared on: that of the newest evaluation."""

    @classmethod
    def of(cls, connection: Connection, store: FileCache, scratch: Path, steps: StepDisplay) -> "_Comparison":
        """Raises LookalikeError without an evaluation, or if this code is of another version than its pipelines."""
        newest = Repository(connection, _MEASURES).good()
        if newest is None or not newest.exists("/queries.parquet"):
            raise LookalikeError("the library has not been evaluated yet: run `lookalike evaluate` first")
        metrics = json.loads(newest.read("/metrics.json"))
        if not metrics["queries"]:
            raise LookalikeError(metrics["note"])
        infos = ProjectJobs(connection).pipelines(newest.at)
        names = [name for name in (*LIBRARY, _MEASURES) if name in infos]
        environments = {name: dict(infos[name].details.transform.env) for name in names}
        _must_be_ours(environments)
        return cls(connection, PastLibrary(newest.at, environments), store, scratch, steps)

    @property
    def metric(self) -> str:
        """The deployed one."""
        return self.past.environments["index"].get("METRIC", "euclidean")

    def evaluated(self, side: ComparisonSide, model: SideModel, place: Path) -> _Evaluated:
        """The rankings of a side: those of the pipelines if they are its own, or computed here below `place`."""
        one = model.spec.sha256 == self.deployed().spec.sha256
        about = self._about(side, model)
        if one and side.metric == self.metric:
            tree = self._tree(_MEASURES)
            for each in tree.entries("/queries.parquet"):
                tree.place(self.store, each, place / each.name)
            return _Evaluated(place, about | {"deployed": True})
        changed = comparison_sides.environment(self.past.environments, side, model.spec.image_size)
        library = RecomputedLibrary(self.connection, PastLibrary(self.past.id, changed), self.store, place, self.steps)
        index = self._fetched("index", place) if one else self._index(side, model, library)
        return _Evaluated(self._ranked(library, index), about | {"deployed": False})

    def compared(self, evaluated: Sequence[_Evaluated], directory: Path) -> Mapping[str, Any]:
        """Writes the report of both sides; returns its values."""
        a, b = evaluated
        trees = {name: CommitTree.at(self.connection, name, self.past.id) for name in _SOURCES}
        commits = {name: tree.commit for name, tree in trees.items() if tree is not None}
        about = self.scratch / "about.json"
        about.write_text(json.dumps({"a": a.about, "b": b.about, "commits": commits | {_MEASURES: self.past.id}}))
        given = {
            "a": StageInput(a.directory, "a"),
            "b": StageInput(b.directory, "b"),
            "about": StageInput(about, "about.json"),
        }
        index = self._tree("index")
        drawn = [*index.entries(f"/*/{TABLE}"), *index.entries(f"/*/{DIRECTORY}/*")]
        if sum(each.size for each in drawn) <= _SHOWN:
            given["index"] = StageInput(self.fetch("index", index, drawn, self.scratch / "shown"), "")
        out = self.scratch / "report"
        self.run("compare", [StageDatum(given, out)])
        directory.mkdir(parents=True, exist_ok=True)
        for each in sorted(out.iterdir()):
            shutil.copyfile(each, directory / each.name)
        found: Mapping[str, Any] = json.loads((out / "comparison.json").read_bytes())
        return found

    def _about(self, side: ComparisonSide, model: SideModel) -> dict[str, Any]:
        spec = model.spec
        return {
            "named": side.model,
            "backbone": spec.name,
            "model": spec.sha256,
            "commit_of_models": model.commit,
            "image_size": spec.image_size,
            "fit": self.past.environments["preprocess"].get("FIT", ""),
            "metric": side.metric,
            "k": int(self.past.environments[_MEASURES].get("K", "10")),
            "stages": {name: values.get(STAGE, "") for name, values in self.past.environments.items()},
        }

    def _index(self, side: ComparisonSide, model: SideModel, library: RecomputedLibrary) -> Path:
        """The index of another model: from the pictures as they are normalised if it takes their size, or else from the
        files."""
        same = model.spec.image_size == self.image_size
        pipelines = LIBRARY[1 if same else 0 :]
        library.scratch.mkdir(parents=True)
        self.steps.say(self._announced(side, model, pipelines))
        library.announced(pipelines, model.spec.image_size)  # refuses an empty library and a full disk
        return library.index(pipelines, self.files(model))

    def _announced(self, side: ComparisonSide, model: SideModel, pipelines: Sequence[str]) -> str:
        pictures = sum(self._tree("index").numbers("/*/index.json", "count"))
        time = vector_time(pictures, model.named, model.spec.image_size, LIBRARY[0] in pipelines)
        of = counted(pictures, "picture", "pictures")
        work = f"computing {', '.join((*pipelines, _MEASURES))} of {of} here with {model.spec.name}"
        return f"{work}: {time}" if time else work

    def _ranked(self, library: RecomputedLibrary, index: Path) -> Path:
        """The rankings from an index."""
        ranked = library.scratch / _MEASURES
        labels = StageInput(self._fetched("labels", library.scratch), "", self.past.id)
        work = StageDatum({"labels": labels, "index": StageInput(index, "", self.past.id)}, ranked)
        library.run(_MEASURES, [work], METRIC=library.past.environments["index"].get("METRIC", "euclidean"))
        return ranked

    def _tree(self, repo: str) -> CommitTree:
        tree = CommitTree.at(self.connection, repo, self.past.id)
        if tree is None:
            raise LookalikeError(f"{repo} has no commit of the newest evaluation: run `lookalike evaluate` first")
        return tree

    def _fetched(self, repo: str, place: Path) -> Path:
        """All files of a repo, below `place`."""
        tree = self._tree(repo)
        return self.fetch(repo, tree, tree.files(), place / f"fetched-{repo}")


def _must_be_ours(environments: Mapping[str, Mapping[str, str]]) -> None:
    """Raises LookalikeError if a deployed stage is of another version than this code's, whose files may differ."""
    shipped = [
        *pipeline_specs.load(pipeline_specs.SHIPPED_SPECS),
        *optional_specs.required_specs(pipeline_specs.SHIPPED_SPECS, "evaluate"),
    ]
    ours = {spec.name: dict(spec.request().transform.env).get(STAGE, "") for spec in shipped}
    for name, values in environments.items():
        if values.get(STAGE, "") != ours[name]:
            raise LookalikeError(
                f"{name} was deployed by another version of lookalike ({values.get(STAGE, '')}, not {ours[name]}): run "
                "`lookalike deploy`, wait for its jobs, and compare again"
            )


def _title(chosen: Sequence[ComparisonSide]) -> str:
    """The name of the report's directory."""
    models = [Path(each.model).name for each in chosen]
    metrics = [each.metric for each in chosen]
    if metrics[0] == metrics[1]:
        names = models
    elif models[0] == models[1]:
        names = metrics
    else:
        names = [f"{model}-{metric}" for model, metric in zip(models, metrics, strict=True)]
    return "-vs-".join(names)
