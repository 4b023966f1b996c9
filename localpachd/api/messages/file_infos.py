"""The FileInfo messages of one commit's nodes: as messages, and as bytes for listings, which may be long."""

from localpachd.api.messages import pfs_messages as messages
from localpachd.api.messages.times import timestamp
from localpachd.api.schema.schema import pfs_pb2
from localpachd.api.schema.wire_format import BYTES, VARINT, key, varint
from localpachd.pfs.pfs_entities import CommitInfo
from localpachd.storage.trees import TreeNode


class FileInfos:
    """Builds the messages. The parts that all nodes of a commit share are built and encoded once."""

    def __init__(self, info: CommitInfo) -> None:
        self._message = pfs_pb2.FileInfo(
            file=pfs_pb2.File(commit=messages.commit(info.commit)), committed=timestamp(info.finishing)
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
