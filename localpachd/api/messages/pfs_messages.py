"""The pfs room's entities as protobuf messages, and back. Every nested message is set, since clients dereference it.

Those of files are also encoded by hand, since listings may be long.
"""

from collections.abc import Mapping
from typing import Any

from google.protobuf.message import Message

from localpachd.api.messages.times import timestamp
from localpachd.api.schema.schema import pfs_pb2
from localpachd.api.schema.wire_format import BYTES, VARINT, key, varint
from localpachd.errors import PachError, prefixed
from localpachd.pfs.pfs_entities import USER, Branch, BranchInfo, Commit, CommitInfo, ProjectInfo, Repo, RepoInfo
from localpachd.storage.trees import TreeNode
from speclang.names import DEFAULT_PROJECT

CommitSetRequest = pfs_pb2.InspectCommitSetRequest | pfs_pb2.SquashCommitSetRequest | pfs_pb2.DropCommitSetRequest
ORIGINS = {"USER": pfs_pb2.USER, "AUTO": pfs_pb2.AUTO, "FSCK": pfs_pb2.FSCK}


def to_repo(message: pfs_pb2.Repo) -> Repo:
    """The repo that a request names; the project defaults to `default`, the type to `user`."""
    _check_given(message, "repo")
    return Repo(message.project.name or DEFAULT_PROJECT, message.name, message.type or USER)


def to_branch(message: pfs_pb2.Branch) -> Branch:
    """The branch that a request names."""
    _check_given(message, "branch")
    _check_given(message.repo, "branch repo")
    return Branch(to_repo(message.repo), message.name)


def to_commit(message: pfs_pb2.Commit) -> Commit:
    """The commit that a request names; the repo may be given only in its branch."""
    _check_given(message, "commit")
    repo = message.repo if message.HasField("repo") else message.branch.repo
    if not repo.name:
        raise PachError("commit must have a repo")
    return Commit(to_repo(repo), message.id, message.branch.name)


def checked(message: pfs_pb2.Commit, which: str) -> Commit:
    """As `to_commit`, for the calls in which Pachyderm says which commit it refuses: the "new" or the "old"."""
    with prefixed(f"check {which} file commit", plain=True):
        return to_commit(message)


def complete(message: Message) -> None:
    """Fills in the parts of names that a request may omit, as they are read here: clients that print a request need
    them all."""
    if isinstance(message, pfs_pb2.Commit):
        named = message.repo if message.HasField("repo") else message.branch.repo
        message.repo.CopyFrom(named)
        message.branch.repo.CopyFrom(named)
    if isinstance(message, pfs_pb2.Repo):
        message.type = message.type or USER
    field = message.DESCRIPTOR.fields_by_name.get("project")
    if field is not None and field.message_type is pfs_pb2.Project.DESCRIPTOR:
        project: pfs_pb2.Project = getattr(message, field.name)
        project.name = project.name or DEFAULT_PROJECT
    for field, value in message.ListFields():
        if field.message_type is not None and not field.message_type.GetOptions().map_entry:
            for each in value if field.label == field.LABEL_REPEATED else (value,):
                complete(each)


def to_commit_set(request: CommitSetRequest) -> str:
    """The id of the commit set that a request names."""
    _check_given(request.commit_set, "commitset")
    return request.commit_set.id


def _check_given(message: Message, what: str) -> None:
    if not message.ByteSize():
        raise PachError(f"{what} cannot be nil")


def repo(value: Repo) -> pfs_pb2.Repo:
    return pfs_pb2.Repo(name=value.name, type=value.type, project=pfs_pb2.Project(name=value.project))


def branch(value: Branch) -> pfs_pb2.Branch:
    return pfs_pb2.Branch(repo=repo(value.repo), name=value.name)


def commit(value: Commit) -> pfs_pb2.Commit:
    """A Commit message with its repo in both fields that clients read."""
    return pfs_pb2.Commit(
        repo=repo(value.repo), id=value.id, branch=pfs_pb2.Branch(repo=repo(value.repo), name=value.branch)
    )


def commit_info(info: CommitInfo, bound: int | None = None) -> pfs_pb2.CommitInfo:
    """A CommitInfo message. Its details have the size once that is known; until then those of a commit that a user
    started are empty, and a job's has none. `bound` is an upper bound of the size in bytes, if there is one."""
    message = pfs_pb2.CommitInfo(
        commit=commit(info.commit),
        origin=pfs_pb2.CommitOrigin(kind=ORIGINS[info.origin]),
        description=info.description,
        parent_commit=commit(info.parent) if info.parent else None,
        child_commits=[commit(each) for each in info.children],
        started=timestamp(info.started or None),
        finishing=timestamp(info.finishing),
        finished=timestamp(info.finished),
        direct_provenance=[commit(each) for each in info.provenance],
        error=info.error,
        size_bytes_upper_bound=info.size if info.size is not None else bound or 0,
        metadata=info.metadata,
    )
    if info.size is not None:
        message.details.size_bytes = info.size
        message.details.compacting_time.SetInParent()
        message.details.validating_time.SetInParent()
    elif info.finished is None and info.origin == "USER":
        message.details.SetInParent()
    return message


def to_trigger(message: pfs_pb2.Trigger) -> Mapping[str, Any]:
    """The fields that are set in a request's trigger."""
    return {field.name: value for field, value in message.ListFields()} or {"branch": ""}


def trigger(value: Mapping[str, Any] | None) -> pfs_pb2.Trigger | None:
    return pfs_pb2.Trigger(**value) if value else None


def branch_info(info: BranchInfo) -> pfs_pb2.BranchInfo:
    return pfs_pb2.BranchInfo(
        branch=branch(info.branch),
        head=commit(info.head),
        provenance=[branch(each) for each in info.provenance],
        subvenance=[branch(each) for each in info.subvenance],
        direct_provenance=[branch(each) for each in info.direct_provenance],
        trigger=trigger(info.trigger),
        created_at=timestamp(info.created),
        metadata=info.metadata,
    )


def repo_info(info: RepoInfo, details: bool) -> pfs_pb2.RepoInfo:
    """A RepoInfo message. The size is in `details` if asked for, else it is the upper bound."""
    return pfs_pb2.RepoInfo(
        repo=repo(info.repo),
        created=timestamp(info.created),
        size_bytes_upper_bound=0 if details else info.size,
        description=info.description,
        branches=[branch(each) for each in info.branches],
        details=pfs_pb2.RepoInfo.Details(size_bytes=info.size) if details else None,
        metadata=info.metadata,
    )


def project_info(info: ProjectInfo) -> pfs_pb2.ProjectInfo:
    return pfs_pb2.ProjectInfo(
        project=pfs_pb2.Project(name=info.name),
        description=info.description,
        created_at=timestamp(info.created),
        metadata=info.metadata,
    )


class FileInfos:
    """Builds the FileInfo messages of one commit's nodes. The parts that all share are built and encoded once."""

    def __init__(self, info: CommitInfo) -> None:
        self._message = pfs_pb2.FileInfo(
            file=pfs_pb2.File(commit=commit(info.commit)), committed=timestamp(info.finishing)
        )
        self._commit = self._message.file.SerializeToString()
        self._committed = pfs_pb2.FileInfo(committed=timestamp(info.finishing)).SerializeToString()

    def message(self, node: TreeNode) -> pfs_pb2.FileInfo:
        """A node's message. The next call overwrites it: all nodes share one message."""
        message, file = self._message, self._message.file
        file.path, file.datum = node.path, node.tag
        message.file_type = pfs_pb2.DIR if node.is_dir else pfs_pb2.FILE
        message.size_bytes, message.hash = node.size, node.hash
        return message

    def encoded(self, node: TreeNode) -> bytes:
        """The same message as bytes."""
        path, tag = node.path.encode(), node.tag.encode()
        file = b"".join((self._commit, _PATH, varint(len(path)), path))
        if tag:
            file = b"".join((file, _DATUM, varint(len(tag)), tag))
        return b"".join(
            (
                _FILE, varint(len(file)), file,
                _A_DIRECTORY if node.is_dir else _A_FILE,
                self._committed,
                _SIZE + varint(node.size) if node.size else b"",
                _HASH, varint(len(node.hash)), node.hash,
            )
        )  # fmt: skip


_file, _info = pfs_pb2.File.DESCRIPTOR.fields_by_name, pfs_pb2.FileInfo.DESCRIPTOR.fields_by_name
_PATH, _DATUM = key(_file["path"], BYTES), key(_file["datum"], BYTES)
_FILE, _HASH = key(_info["file"], BYTES), key(_info["hash"], BYTES)
_SIZE = key(_info["size_bytes"], VARINT)
_A_FILE, _A_DIRECTORY = (key(_info["file_type"], VARINT) + varint(kind) for kind in (pfs_pb2.FILE, pfs_pb2.DIR))
