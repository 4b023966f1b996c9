"""A datum as a task for a worker, and its result as entries of the job's commits. Pure but for reading the names of
files below an input."""

import sqlite3
from collections.abc import Iterator, Mapping

from localpachd.pfs.entities import Repo
from localpachd.pps import records
from localpachd.pps.datums import DatumInput
from localpachd.pps.entities import Job
from localpachd.pps.records import Record
from localpachd.pps.scheduling.skipping import Numbered
from localpachd.storage.chunks import Chunks
from localpachd.storage.filesets import Content, FileSet, FileSetRef
from localpachd.worker.tasks import DatumResult, DatumWork, InputFile, Outcome

Entry = tuple[str, str, Content | None]


def datum_work(numbered: Numbered, job: Job, files: Mapping[Repo, FileSetRef]) -> DatumWork:
    """The datum as a worker takes it."""
    inputs = tuple(
        InputFile(each.name, each.path, files[repo_of(each)], each.lazy, each.empty_files)
        for each in numbered.datum.inputs
    )
    return DatumWork(numbered.datum.id, inputs, environment(numbered, job))


def environment(numbered: Numbered, job: Job) -> dict[str, str]:
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


def record_of(numbered: Numbered, result: DatumResult, job: Job) -> Record:
    """The record of a datum's result."""
    return Record(
        id=result.id,
        job=job,
        inputs=numbered.datum.inputs,
        hash=numbered.hash,
        outcome=result.state,
        reason=result.reason,
        stats=result.stats,
        index=numbered.index,
    )


def output_entries(result: DatumResult) -> Iterator[Entry]:
    """The entries of a datum in the output commit: none unless it was processed."""
    if result.state is Outcome.PROCESSED:
        for file in result.output:
            yield file.path, result.id, file.content


def meta_entries(
    conn: sqlite3.Connection,
    chunks: Chunks,
    record: Record,
    result: DatumResult,
    files: Mapping[Repo, FileSetRef],
    variables: Mapping[str, str],
) -> Iterator[Entry]:
    """The entries of a datum in the meta commit: its record, and its inputs, environment and output by reference. Lazy
    inputs are left out, as in Pachyderm, where they are pipes."""
    root = records.pfs_path(record.id)
    yield records.meta_path(record.id), record.id, chunks.store([records.encode(record)])
    lines = "".join(f"{name}={value}\n" for name, value in variables.items())
    yield f"{root}/.env", record.id, chunks.store([lines.encode()])
    for each in record.inputs:
        if not each.lazy:
            yield from input_entries(conn, record, each, files)
    for file in result.output:
        yield f"{root}/out{file.path}", record.id, file.content


def input_entries(
    conn: sqlite3.Connection, record: Record, each: DatumInput, files: Mapping[Repo, FileSetRef]
) -> Iterator[Entry]:
    """The files of one input of a datum, at their paths in the meta commit."""
    for path, content in _below(FileSet(conn, files[repo_of(each)]), each.path):
        place = f"{records.pfs_path(record.id)}/{each.name}{path}"
        yield place, record.id, Content(0, ()) if each.empty_files else content


def _below(files: FileSet, path: str) -> Iterator[tuple[str, Content]]:
    found = files.under(path) if path.endswith("/") else files.get(path)
    for file in found:
        yield file.path, file.content


def repo_of(each: DatumInput) -> Repo:
    """The repo that an input of a datum is in."""
    return Repo(each.project, each.repo, each.repo_type)
