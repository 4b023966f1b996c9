"""A file as a repo holds it. Knows no content."""

from dataclasses import dataclass
from typing import Any

from python_pachyderm.proto.v2.pfs import pfs_pb2


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file or directory of a repo: its path, its size in bytes with all below it, and Pachyderm's hash of its content
    in hex digits; the repo and the commit that it was read at, and the datum that wrote it, "" for files of users and
    for directories."""

    path: str
    size: int
    hash: str
    is_directory: bool = False
    repo: str = ""
    commit: str = ""
    datum: str = ""

    @property
    def name(self) -> str:
        """The path without slashes at its ends."""
        return self.path.strip("/")


def read_info(info: Any) -> StoredFile:
    """The file of a FileInfo."""
    commit, is_directory = info.file.commit, info.file_type == pfs_pb2.DIR
    repo = commit.repo.name or commit.branch.repo.name
    return StoredFile(info.file.path, info.size_bytes, info.hash.hex(), is_directory, repo, commit.id, info.file.datum)
