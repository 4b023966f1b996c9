"""The paths of the tables of a picture that features and partition wrote, in this version and in earlier ones, whose
answers are still to be traced. Follows nothing."""

from typing import NamedTuple

from pipelines.client.lineage import Lineage
from stages.record import entry_paths, part_names

PARTITION = "partition"
"""The pipeline between features and index, which earlier versions did not have."""


class TablePaths(NamedTuple):
    """The path of the table that features wrote, and of that which partition wrote, "" if there was no partition."""

    features: str
    partition: str = ""


def of_entry(lineage: Lineage, entry: str, at: str) -> TablePaths:
    """The tables of an entry of the queries (a PFS name) at a commit set."""
    path, before = (f"/{each}/images.parquet" for each in (entry_paths.directory(entry), f"queries/{entry}"))
    return TablePaths(before if _is_earlier(lineage, "features-queries", path, before, at) else path)


def of_part(lineage: Lineage, part: str, segment: str, at: str) -> TablePaths:
    """The tables of a part of the library, and of a segment, at a commit set."""
    directory = part_names.directory(part)
    path, before = f"/library/{directory}/{part}.parquet", f"/library/{segment}/{part}.parquet"
    if _is_earlier(lineage, "features", path, before, at):
        return TablePaths(before)
    bucket = directory.partition("/")[0]
    # The second is that of a pipeline with the glob /library/(*/*), for smaller datums.
    possible = [f"/library/{segment}/{name}.parquet" for name in (bucket, directory.replace("/", "-"))]
    there = (each for each in possible if lineage.file(PARTITION, each, at))
    return TablePaths(path, next(there, possible[0]))


def unknown(lineage: Lineage, segment: str, at: str) -> TablePaths:
    """The directories of the tables of a picture of the library whose part is not known."""
    return TablePaths("/library/", f"/library/{segment}/" if lineage.commit(PARTITION, at) else "")


def _is_earlier(lineage: Lineage, pipeline: str, path: str, before: str, at: str) -> bool:
    """Whether a table is where earlier versions put it."""
    return lineage.file(pipeline, path, at) is None and lineage.file(pipeline, before, at) is not None
