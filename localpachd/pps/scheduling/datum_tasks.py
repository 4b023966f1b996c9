"""A datum as a task for a worker, and its result as entries of the job's commits. Pure but for reading the names of
files below an input."""

import sqlite3
from collections.abc import Iterator, Mapping

from localpachd.pfs.pfs_entities import Repo
from localpachd.pps import datum_records
from localpachd.pps.datum_records import DatumRecord
from localpachd.pps.datums import DatumInput
from localpachd.pps.pps_entities import Job
from localpachd.pps.scheduling.datum_selection import NumberedDatum
from localpachd.storage.chunk_store import ChunkStore
from localpachd.storage.filesets import FileContent, FileSet, FileSetRef
from localpachd.worker.tasks import DatumOutcome, DatumResult, DatumWork, InputFile

CommitEntry = tuple[str, str, FileContent | None]


def datum_work(numbered: NumberedDatum, job: Job, files: Mapping[Repo, FileSetRef]) -> DatumWork:
    """The datum as a worker takes it."""
    inputs = tuple(
        InputFile(each.name, each.path, files[repo_of(each)], each.lazy, each.empty_files)
        for each in numbered.datum.inputs
    )
    return DatumWork(numbered.datum.id, inputs, environment(numbered, job))


def environment(numbered: NumberedDatum, job: Job) -> dict[str, str]:
    """The variables of a datum. Of several files of one input the last one counts, as in Pachyderm."""
    variables: dict[str, str] = {}
    for each in numbered.datum.inputs:
        variables[each.name] = f"/pfs/{each.name}{each.path}".rstrip("/")
        variables[f"{each.name}_COMMIT"] = each.commit
        if each.join_on:
            variables[f"PACH_DATUM_{each.name}_JOIN_ON"] = each.join_on
        if each.group_by:
            variables[f"PACH_DATUM_{each.name}_GROUP_BY"] = each.group_by
    variables["PACH_DATUM_ID"] = numbered.datum.id
    variables["PACH_JOB_ID"] = variables["PACH_OUTPUT_COMMIT_ID"] = job.id
    return variables


def record_of(numbered: NumberedDatum, result: DatumResult, job: Job) -> DatumRecord:
    """The record of a datum's result."""
    return DatumRecord(
        id=result.id,
        job=job,
        inputs=numbered.datum.inputs,
        hash=numbered.hash,
        outcome=result.state,
        reason=result.reason,
        stats=result.stats,
        index=numbered.index,
    )


def output_entries(result: DatumResult) -> Iterator[CommitEntry]:
    """The entries of a datum in the output commit: none unless it was processed."""
    if result.state is DatumOutcome.PROCESSED:
        for file in result.output:
            yield file.path, result.id, file.content


def meta_entries(
    conn: sqlite3.Connection,
    chunks: ChunkStore,
    record: DatumRecord,
    result: DatumResult,
    files: Mapping[Repo, FileSetRef],
    variables: Mapping[str, str],
) -> Iterator[CommitEntry]:
    """The entries of a datum in the meta commit: its record, and its inputs, environment and output by reference. Lazy
    inputs are left out, as in Pachyderm, where they are pipes."""
    root = datum_records.pfs_path(record.id)
    yield datum_records.meta_path(record.id), record.id, chunks.store([datum_records.encode(record)])
    lines = "".join(f"{name}={value}\n" for name, value in variables.items())
    yield f"{root}/.env", record.id, chunks.store([lines.encode()])
    for each in record.inputs:
        if not each.lazy:
            yield from input_entries(conn, record, each, files)
    for file in result.output:
        yield f"{root}/out{file.path}", record.id, file.content


def input_entries(
    conn: sqlite3.Connection, record: DatumRecord, each: DatumInput, files: Mapping[Repo, FileSetRef]
) -> Iterator[CommitEntry]:
    """The files of one input of a datum, at their paths in the meta commit."""
    for path, content in _below(FileSet(conn, files[repo_of(each)]), each.path):
        place = f"{datum_records.pfs_path(record.id)}/{each.name}{path}"
        yield place, record.id, FileContent(0, ()) if each.empty_files else content


def _below(files: FileSet, path: str) -> Iterator[tuple[str, FileContent]]:
    found = files.under(path) if path.endswith("/") else files.get(path)
    for file in found:
        yield file.path, file.content


def repo_of(each: DatumInput) -> Repo:
    """The repo that an input of a datum is in."""
    return Repo(each.project, each.repo, each.repo_type)
