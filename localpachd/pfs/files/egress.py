"""Egress: copying a commit's files to a directory or an object store. Knows no jobs."""

import itertools
from collections.abc import Callable, Iterator

from localpachd.pfs import commits, contents
from localpachd.pfs.pfs_entities import Commit
from localpachd.pfs.pfs_service import PfsService
from localpachd.storage import object_urls


def copy(pfs: PfsService, commit: Commit, url: str, check: Callable[[], None] = lambda: None) -> int:
    """Copies every file of a commit, which may be open, below a URL. Files there are overwritten, and others stay, as
    with Pachyderm. `check` is called before each file and may raise to stop. Returns the number of bytes."""

    def files() -> Iterator[tuple[str, Iterator[bytes]]]:
        for path, parts in itertools.groupby(found, lambda file: file.path):
            check()
            yield path, itertools.chain.from_iterable(pfs.chunks.read(part.content, name=path) for part in list(parts))

    with pfs.chunks.uses.one():
        with pfs.db.read() as conn:
            found = list(contents.fileset(conn, commits.resolve(conn, commit)).walk())
        return object_urls.upload(url, files(), pfs.reach)
