"""The way of one picture, from a vector of it back to the files that it came from, at one commit set.

Knows the pipelines up to partition, and the model; knows no index and no answers. Reads the files of this one picture,
never a list of all datums or pictures.
"""

import io
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime

from pipelines.analysis.tracing.picture_files import PackMember, PictureFile, PictureFiles
from pipelines.analysis.tracing.traces import PictureOrigin, SourceFile, TraceCheck, TraceModel, TracePicture, TraceStep
from pipelines.client.jobs.datum_records import DatumRecord
from pipelines.client.lineage import CommitDetails, Lineage
from pipelines.client.stored_file import StoredFile
from stages.backbone.backbone_spec import MODEL_FILE, SPEC_FILE, parse_spec
from stages.datum.contract import StageError
from stages.datum.stage_version import STAGE
from stages.files.tables.image_table import ImageTable
from stages.record import entry_paths, part_names
from stages.record.sources import Source


class TraceSteps:
    """Steps at one commit set."""

    def __init__(self, lineage: Lineage, at: str) -> None:
        self._lineage = lineage
        self._at = at

    def of(self, pipeline: str, path: str) -> TraceStep:
        """The step that computed a file."""
        found = self._lineage.file(pipeline, path, self._at)
        if found is None:
            return TraceStep(pipeline, path, note=f"{path} is not there at this commit")
        return self.at(found)

    def at(self, file: StoredFile) -> TraceStep:
        """The step that computed a file that was found."""
        record = self._lineage.record(file)
        if record is None:
            gone = "the record of its datum is gone, so neither its job nor its times are known"
            return TraceStep(file.repo, file.path, file.commit, file.datum, note=gone)
        facts = self._lineage.job(file.repo, record.job)
        unknown = "" if facts else "its job was deleted, as jobs of squashed commits are, and its code is not known"
        environment = dict(facts.environment) if facts else {}
        return TraceStep(
            pipeline=file.repo,
            path=file.path,
            commit=file.commit,
            datum=file.datum,
            job=record.job,
            state=record.state,
            finished=facts.finished if facts else None,
            download=record.download,
            process=record.process,
            upload=record.upload,
            version=facts.version if facts else None,
            stage=environment.pop(STAGE, ""),
            image=facts.image if facts else "",
            environment=environment,
            unchanged=self._unchanged(record),
            note=unknown,
        )

    def environment(self, pipeline: str) -> Mapping[str, str]:
        """The variables of the pipeline's job at this commit set; none if that is gone."""
        commit = self._lineage.commit(pipeline, self._at)
        facts = self._lineage.job(pipeline, commit.id) if commit else None
        return facts.environment if facts else {}

    def _unchanged(self, record: DatumRecord) -> bool | None:
        """Whether the inputs that the datum had are those of this commit set, by their hashes."""
        known = [each for each in record.inputs if each.hash]
        now = [self._lineage.file(each.repo, each.path, self._at) for each in known]
        if not known or None in now:
            return None
        return all(each.hash == found.hash for each, found in zip(known, now, strict=True) if found)


PARTITION = "partition"
"""The pipeline between features and index."""

_FACTS = tuple(each.name for each in fields(PictureOrigin) if each.name in Source._fields)

MOST_SOURCES = 20
"""Most sources of one picture that are followed."""

LARGEST_TABLE = 16 << 20
"""Bytes of the largest table that is read to check a step."""


@dataclass(frozen=True, slots=True)
class PictureLocation:
    """The library or an entry of the queries: its repo and pipelines, the entry's name in PFS, "" for the library, one
    picture, and the segment of the index that it is in, "" for a query."""

    repo: str
    preprocess: str
    features: str
    above: str
    id: str
    names: tuple[str, ...]
    segment: str = ""


VectorSteps = tuple[TraceStep, TraceStep | None]
"""The step of features, and the one of partition, None for a query."""


class PictureLineage:
    """The ways of pictures at a commit set, whose vectors are those of one model (its name and hash); and what was
    compared on them."""

    def __init__(self, lineage: Lineage, commit: str, backbone: str, model: str) -> None:
        self._lineage = lineage
        self._commit = commit
        self._backbone = backbone
        self._sha256 = model
        self._checks: dict[str, bool] = {}
        self.steps = TraceSteps(lineage, commit)

    def pictured(self, side: PictureLocation) -> TracePicture:
        """A picture with the origins of its sources."""
        places = PictureFiles(self._lineage, side.repo, side.preprocess, self._commit, side.above)
        origins, thumbnail = [], b""
        for name in side.names[:MOST_SOURCES]:
            found = places.find(name, side.id, self._buckets(side.preprocess))
            if found is None:
                origins.append(self._lost(side, name))
                continue
            place, packed = found
            computed = self._computed(side, packed.part)
            origins.append(self._origin(places, place, packed, name, computed))
            self._check_tables(side, *computed)
            thumbnail = thumbnail or packed.pack.thumbnail(packed.row)
        return TracePicture(side.id, side.names, tuple(origins), thumbnail)

    def _computed(self, side: PictureLocation, part: str) -> VectorSteps:
        """The steps that computed a vector of the picture, and dealt it to its segment."""
        features, partition = self._tables(side, part)
        return self.steps.of(side.features, features), self.steps.of(PARTITION, partition) if partition else None

    def _tables(self, side: PictureLocation, part: str | None) -> tuple[str, str]:
        """The paths of the table that features wrote, and of the one that partition wrote, "" for a query; those of
        their directories if the part is not known."""
        if side.above:
            return f"/{entry_paths.directory(side.above)}/images.parquet", ""
        dealt = f"/library/{side.segment}/"
        if part is None:
            return "/library/", dealt
        directory = part_names.directory(part)
        # The second is that of a pipeline with the glob /library/(*/*), for smaller datums.
        possible = [f"{dealt}{name}.parquet" for name in (directory.partition("/")[0], directory.replace("/", "-"))]
        there = (each for each in possible if self._lineage.file(PARTITION, each, self._commit))
        return f"/library/{directory}/{part}.parquet", next(there, possible[0])

    def _buckets(self, pipeline: str) -> int:
        """The number of parts of lone pictures, as preprocess had it."""
        text = self.steps.environment(pipeline).get("BUCKETS", "")
        return int(text) if text.isdecimal() and int(text) else part_names.BUCKETS

    def _origin(
        self, places: PictureFiles, place: PictureFile, packed: PackMember, name: str, computed: VectorSteps
    ) -> PictureOrigin:
        source = next(each for each in packed.row.sources if each.path == name)
        commit, certain = places.put_by(place, source.sha256, packed.row.id)
        doubt = "" if certain else "it was put by this commit or an earlier one, whose pictures cannot be read any more"
        self.check("preprocess made a picture of this id from each source", True)
        return PictureOrigin(
            name=name,
            file=self._file(place.file.repo, place.file.path, place.member, commit, doubt),
            preprocess=self.steps.at(packed.pack.file),
            features=computed[0],
            partition=computed[1],
            **{name: getattr(source, name) for name in _FACTS},
        )

    def _lost(self, side: PictureLocation, name: str) -> PictureOrigin:
        """An origin whose file or pack cannot be found."""
        self.check("preprocess made a picture of this id from each source", False)
        gone, unknown = "no pack of this commit holds it", "the part of this picture is not known"
        features, dealt = self._tables(side, None)
        file, preprocess = SourceFile(side.repo, "", note=gone), TraceStep(side.preprocess, "", note=gone)
        partition = TraceStep(PARTITION, dealt, note=unknown) if dealt else None
        return PictureOrigin(name, file, preprocess, TraceStep(side.features, features, note=unknown), partition)

    def _check_tables(self, side: PictureLocation, features: TraceStep, partition: TraceStep | None) -> None:
        of = "query" if side.above else "neighbour"
        table = self._table(features)
        if table is not None:
            self.check(f"features computed a vector of the {of}", side.id in table.ids)
            self.check("features used the answer's model", table.origin.model == self._sha256)
        dealt = self._table(partition) if partition is not None else None
        if dealt is not None:
            self.check("partition put the neighbour into its segment", side.id in dealt.ids)

    def _table(self, step: TraceStep) -> ImageTable | None:
        """The table of a step; None if it is not there, is large, or is that of another version."""
        file = self._lineage.file(step.pipeline, step.path, self._commit)
        if file is None or file.size > LARGEST_TABLE:
            return None
        try:
            return ImageTable.read(io.BytesIO(self._lineage.read(file)))
        except StageError:
            return None

    def model(self) -> TraceModel:
        """The model, with the file in `models` and the commit that put it."""
        spec = self._lineage.file("models", f"/{SPEC_FILE}", self._commit)
        if spec is None:
            gone = SourceFile("models", f"/{MODEL_FILE}", note="no backbone is there at this commit")
            return TraceModel(self._backbone, self._sha256, gone)
        try:
            described = parse_spec(self._lineage.read(spec))
            self.check("the backbone in models is the answer's", described.sha256 == self._sha256)
        except StageError:
            self.check("the backbone in models is the answer's", False)
        commit, _ = PictureFiles(self._lineage, "models", "", self._commit).put_by(PictureFile(spec), "", "")
        file = self._file("models", f"/{MODEL_FILE}", "", commit, "")
        return TraceModel(self._backbone, self._sha256, file)

    def _file(self, repo: str, path: str, member: str, commit: str, note: str) -> SourceFile:
        made = self._lineage.commit(repo, commit)
        if made is None:
            return SourceFile(repo, path, member, commit, note="its commit was squashed or deleted")
        return SourceFile(repo, path, member, commit, commit_start(made), made.author, made.description, note)

    def check(self, statement: str, holds: bool) -> None:
        """Notes a statement that was compared; it is true if it always was."""
        self._checks[statement] = holds and self._checks.get(statement, True)

    def checked(self, steps: list[TraceStep]) -> tuple[TraceCheck, ...]:
        """All statements, with the one on the inputs of these steps."""
        known = [step.unchanged for step in steps if step.unchanged is not None]
        if known:
            self.check("each datum was computed from the inputs of this commit, by their hashes", all(known))
        return tuple(TraceCheck(*each) for each in self._checks.items())


def commit_start(made: CommitDetails | None) -> datetime | None:
    """The start of a commit, that of the original if it was imported."""
    return (made.original or made.started) if made else None
