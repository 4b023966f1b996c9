"""Labelled pictures that the library has already: they get labels, and are not stored again."""

from dataclasses import replace

from pipelines.analysis.changes.commit_pictures import PREPROCESS, CommitPictures
from pipelines.analysis.classifiers.label_plan import LabelPlan
from pipelines.client import commit_sets
from pipelines.client.commit_history import CommitHistory
from pipelines.client.commit_writer import CommitWriter
from pipelines.client.server.connection import Connection
from pipelines.library.content_cache import ContentCache
from pipelines.library.picture_sources import PictureSource
from pipelines.library.snapshots import REPO


def without_known(connection: Connection, planned: LabelPlan, kept: ContentCache) -> LabelPlan:
    """The plan without the files whose pictures the library has: an archive's under their names, others also under
    another one, which then has the label. Where preprocess has not read the newest library, every file is put."""
    library = connection.retry(_hashes, connection, kept)
    names = {sha256: name for name, sha256 in sorted(library.items(), reverse=True)}
    named: dict[str, str] = {}
    new: list[PictureSource] = []
    for source in planned.sources:
        pictures = planned.pictures[source.name]
        held = {name: name for name, sha256 in pictures.items() if library.get(name) == sha256}
        if not held and [*pictures] == [source.name] and pictures[source.name] in names:
            held = {source.name: names[pictures[source.name]]}
        if held and held.keys() == pictures.keys():
            named |= held
        else:
            new.append(source)
    files = {
        name: [each._replace(source=named.get(each.source, each.source)) for each in rows]
        for name, rows in planned.files.items()
    }
    return replace(planned, sources=new, files=files, of={named.get(name, name): at for name, at in planned.of.items()})


def _hashes(connection: Connection, kept: ContentCache) -> dict[str, str]:
    """The SHA-256 of each picture by true name, as preprocess has read the newest library; none if it has not."""
    made = next((each for each in CommitHistory(connection).records(PREPROCESS[REPO]) if each.good), None)
    read = None if made is None else commit_sets.inspect_commit(connection, REPO, made.id)
    if made is None or read is None or read.commit.id != CommitWriter(connection, REPO).newest():
        return {}
    return CommitPictures(connection, kept).hashes(REPO, made.id)
