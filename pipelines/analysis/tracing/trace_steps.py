"""The steps of a trace: a file that a pipeline computed, with its datum, the job that processed it, and its code."""

from collections.abc import Mapping

from pipelines.analysis.tracing.traces import TraceStep
from pipelines.client.jobs.datum_records import DatumRecord
from pipelines.client.lineage import FileOrigin, Lineage
from stages.datum.stage_version import STAGE


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

    def at(self, file: FileOrigin) -> TraceStep:
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
