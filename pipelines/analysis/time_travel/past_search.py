"""Pictures compared with the library of an earlier commit: the stages run here, on the files of that commit set, with
the variables of the pipelines of that time. Nothing is written to the server."""

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pipelines.analysis.stage_runs import StageDatum, StageInput, kept_files
from pipelines.analysis.time_travel import past_library
from pipelines.analysis.time_travel.past_library import PastLibrary
from pipelines.analysis.time_travel.recomputation import RecomputedLibrary
from pipelines.analysis.time_travel.stage_workbench import StageWorkbench, StepDisplay
from pipelines.client.commit_tree import CommitTree, batches
from pipelines.client.server.connection import Connection
from pipelines.client.stored_file import StoredFile
from pipelines.errors import LookalikeError
from pipelines.library import queries, result_sheets
from pipelines.library.queries import QueryEntries, QueryUpload
from pipelines.library.result_sheets import ResultSheet
from stages.backbone.backbone_spec import MODEL_FILE, SCALE_FILE, SPEC_FILE, TEXT_FILE, BackboneSpec
from stages.datum.contract import load
from stages.datum.file_cache import FileCache
from stages.record import entry_paths


@dataclass(frozen=True, slots=True)
class PastAnswers:
    """The outcome: the entries as for a query of today, with the commit that was asked and no file put; and their
    sheets."""

    asked: QueryUpload
    sheets: list[ResultSheet]


def ask(
    connection: Connection,
    commit: str,
    found: QueryEntries,
    to: Path,
    steps: StepDisplay,
    k: int | None = None,
    todays_code: bool = False,
    question: bytes = b"",
    store: FileCache | None = None,
) -> PastAnswers:
    """Answers each query entry from the library at a commit set, and writes its sheet to the directory
    `<entry>@<commit>` below `to`.

    todays_code: whether stages that have changed since may compute the library again. k: the neighbours that are wanted
    of each query. question: a question.json for each entry, b"" for none. Raises LookalikeError, with the way out,
    if the library of then cannot be asked.
    """
    then, now = past_library.read(connection, commit), past_library.shipped_environments()
    if not todays_code:
        past_library.check(then, now)
    models, spec = past_library.backbone(past_library.source(connection, "models", commit), commit)
    _check_words(found, models, commit)
    again = past_library.recomputed(then, now)
    asked = past_library.with_todays_code(then, now, spec.image_size) if todays_code else then
    _check_size(asked, spec)
    _check_kept(k, asked)
    with kept_files(store) as (store, scratch):
        entries = queries.lay_out(found.groups, scratch / "queries", question)
        work = _Question(connection, asked, store, scratch, steps, models, spec, list(entries))
        index = work.recomputed(again) if again else work.index()
        work.vectors()
        work.search(index)
        sheets = work.sheets(entries, to)
    return PastAnswers(QueryUpload(list(entries.values()), 0, commit, found.left_out, found.unreadable), sheets)


class _Segments:
    """An index: the names of its segments, and a way to bring some of them to a directory."""

    def __init__(self, groups: Sequence[Sequence[str]], bring: Callable[[Sequence[str]], Path]) -> None:
        self.groups = groups
        self.bring = bring


@dataclass(frozen=True, slots=True)
class _Question(StageWorkbench):
    """Entries asked of one past library. `scratch` holds the files of all stages, in directories named by pipeline."""

    models: CommitTree
    spec: BackboneSpec
    entries: Sequence[str]

    def index(self) -> _Segments:
        """The index of then. Raises LookalikeError if it is missing, empty, or another model's."""
        tree = CommitTree.at(self.connection, "index", self.past.id)
        files = [] if tree is None else tree.files()
        if tree is None or not files:
            raise self.past.empty()
        segments: dict[str, list[StoredFile]] = {}
        for each in files:
            segments.setdefault(each.name.partition("/")[0], []).append(each)
        self._check_model(tree, next(iter(segments)))
        whole = [StoredFile(name, sum(each.size for each in of), "", True) for name, of in segments.items()]

        def bring(names: Sequence[str]) -> Path:
            wanted = [each for name in names for each in segments[name]]
            return self.fetch("index", tree, wanted, self.scratch / "index")

        return _Segments([[each.path for each in group] for group in batches(whole, self.store.most)], bring)

    def recomputed(self, pipelines: Sequence[str]) -> _Segments:
        """The index of then, computed again by these pipelines of the library with the code of today."""
        work = RecomputedLibrary(self.connection, self.past, self.store, self.scratch, self.steps)
        self.steps.say(work.announced(pipelines, self.spec.image_size))
        place = work.index(pipelines, self._brought_models())
        names = sorted(each.name for each in place.iterdir()) if place.is_dir() else []
        if not names:
            raise self.past.empty()
        return _Segments([names], lambda _: place)

    def vectors(self) -> None:
        """Computes the vectors of the entries' pictures."""
        normalised = self.scratch / "preprocess-queries"
        self.run("preprocess-queries", [
            StageDatum({"queries": StageInput(self.scratch / "queries" / each, each, self.past.id)}, normalised)
            for each in self.entries
        ])  # fmt: skip
        models = StageInput(self._brought_models(), "", self.models.commit)
        self.run("features-queries", [
            StageDatum({"models": models, "pictures": each}, self.scratch / "features-queries")
            for each in (
                StageInput(normalised / "queries" / entry, f"queries/{entry}", self.past.id) for entry in self.entries
            )
        ])  # fmt: skip

    def search(self, index: _Segments) -> None:
        """Compares the entries with all segments, as many at a time as are kept on the disk."""
        buckets = sorted((self.scratch / "features-queries" / "queries").iterdir())
        for names in index.groups:
            place = index.bring(names)
            self.run("search", [
                StageDatum(
                    {
                        "index": StageInput(place / name, name, self.past.id),
                        "queries": StageInput(bucket, f"queries/{bucket.name}", self.past.id),
                    },
                    self.scratch / "search",
                )
                for name in names
                for bucket in buckets
            ])  # fmt: skip
            shutil.rmtree(place)
            self.store.trim()

    def sheets(self, entries: Mapping[str, str], to: Path) -> list[ResultSheet]:
        """Writes the sheets of the entries, given with their true names, below `to`."""
        vectors, found = self.scratch / "features-queries", self.scratch / "search"
        works = []
        for each in self.entries:
            entry = entry_paths.directory(each)
            sides = {"queries": StageInput(vectors / entry, entry, self.past.id)}
            if (found / each).is_dir():
                sides["search"] = StageInput(found / each, each, self.past.id)
            works.append(StageDatum(sides, self.scratch / "render"))
        self.run("render", works)
        sheets = []
        for each, name in entries.items():
            directory = to / f"{result_sheets.directory_name(name)}@{self.past.short}"
            sheets.append(result_sheets.copy_sheet(self.scratch / "render" / each, directory, name))
        return sheets

    def _brought_models(self) -> Path:
        """The directory of the backbone of then."""
        place = self.scratch / "models"
        if not place.is_dir():
            names = (MODEL_FILE, SPEC_FILE, SCALE_FILE, TEXT_FILE)
            files = [each for each in self.models.entries("/*") if each.name in names]
            self.fetch("model", self.models, files, place)
        return place

    def _check_model(self, index: CommitTree, segment: str) -> None:
        try:
            facts = json.loads(index.read(f"{segment}/index.json") or b"{}")
            model = str(facts["model"])
        except (ValueError, KeyError, TypeError):
            return  # the stage search compares them too
        if model != self.spec.sha256:
            raise LookalikeError(
                f"at commit {self.past.short} the index held vectors of another model than the repo models: "
                "there were no answers then; name a later commit, which `lookalike history` lists"
            )


def _check_words(found: QueryEntries, models: CommitTree, commit: str) -> None:
    if found.worded and TEXT_FILE not in {each.name for each in models.entries("/*")}:
        raise LookalikeError(
            f"at commit {commit[:12]} {load('stages.backbone.text_tower').NO_WORDS}, or name a later commit, which "
            "`lookalike history` lists"
        )


def _check_size(past: PastLibrary, spec: BackboneSpec) -> None:
    size = past.environments["preprocess-queries"].get("IMAGE_SIZE", "").strip()
    if size.isdecimal() and int(size) != spec.image_size:
        raise LookalikeError(
            f"at commit {past.short} pictures were made {size} pixels, but the backbone {spec.name} took "
            f"{spec.image_size}: there were no answers then; name a later commit, which `lookalike history` lists"
        )


def _check_kept(k: int | None, past: PastLibrary) -> None:
    kept = past.environments["render"].get("K", "").strip()
    if k is not None and kept.isdecimal() and k > int(kept):
        raise LookalikeError(f"K was {kept} at commit {past.short}: only the {kept} nearest of each query, not {k}")
