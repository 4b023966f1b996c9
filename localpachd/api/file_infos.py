"""The FileInfo messages of one commit's nodes: as messages, and as bytes for listings, which may be long."""

from google.protobuf.descriptor import FieldDescriptor

from localpachd.api import pfs_messages as messages
from localpachd.api.schema import pfs_pb2
from localpachd.api.times import timestamp
from localpachd.pfs.entities import CommitInfo
from localpachd.storage.trees import Node

_VARINT, _BYTES = 0, 2
"""Wire types of protobuf's encoding."""


class FileInfos:
    """Builds the messages. The parts that all nodes of a commit share are built and encoded once."""

    def __init__(self, info: CommitInfo) -> None:
        self._message = pfs_pb2.FileInfo(
            file=pfs_pb2.File(commit=messages.commit(info.commit)), committed=timestamp(info.finishing)
        )
        self._commit = self._message.file.SerializeToString()
        self._committed = pfs_pb2.FileInfo(committed=timestamp(info.finishing)).SerializeToString()

    def message(self, node: Node) -> pfs_pb2.FileInfo:
        """A node's message. The next call overwrites it: all nodes share one message."""
        message, file = self._message, self._message.file
        file.path, file.datum = node.path, node.tag
        message.file_type = pfs_pb2.DIR if node.is_dir else pfs_pb2.FILE
        message.size_bytes, message.hash = node.size, node.hash
        return message

    def encoded(self, node: Node) -> bytes:
        """The same message as bytes. The protobuf library takes several times as long: the version that the client
        requires is pure Python."""
        path, tag = node.path.encode(), node.tag.encode()
        file = b"".join((self._commit, _PATH, _varint(len(path)), path))
        if tag:
            file = b"".join((file, _DATUM, _varint(len(tag)), tag))
        return b"".join(
            (
                _FILE, _varint(len(file)), file,
                _A_DIRECTORY if node.is_dir else _A_FILE,
                self._committed,
                _SIZE + _varint(node.size) if node.size else b"",
                _HASH, _varint(len(node.hash)), node.hash,
            )
        )  # fmt: skip


def _varint(number: int) -> bytes:
    if number < 0x80:
        return _SHORT[number]
    parts = bytearray()
    while number >= 0x80:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _key(field: FieldDescriptor, wire_type: int) -> bytes:
    return _varint(field.number << 3 | wire_type)


_SHORT = [bytes((number,)) for number in range(0x80)]
_file, _info = pfs_pb2.File.DESCRIPTOR.fields_by_name, pfs_pb2.FileInfo.DESCRIPTOR.fields_by_name
_PATH, _DATUM = _key(_file["path"], _BYTES), _key(_file["datum"], _BYTES)
_FILE, _HASH = _key(_info["file"], _BYTES), _key(_info["hash"], _BYTES)
_SIZE = _key(_info["size_bytes"], _VARINT)
_A_FILE, _A_DIRECTORY = (_key(_info["file_type"], _VARINT) + _varint(kind) for kind in (pfs_pb2.FILE, pfs_pb2.DIR))
