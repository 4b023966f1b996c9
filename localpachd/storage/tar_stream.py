"""The tar stream that GetFileTAR sends, made from a stream of nodes. Knows no commits and writes no files."""

import tarfile
from collections.abc import Iterable, Iterator

from localpachd.storage.chunk_store import ChunkStore
from localpachd.storage.trees import TreeNode

_BLOCK = tarfile.BLOCKSIZE


def stream(nodes: Iterable[TreeNode], chunks: ChunkStore) -> Iterator[bytes]:
    """A tar archive in pieces of at most 1 MiB, as the real server writes it.

    Names are absolute paths, directories end in a slash and have no content; mode, owner and time are 0. Long names and
    sizes use pax headers. Raises DataLoss if a file is damaged.
    """
    for node in nodes:
        entry = tarfile.TarInfo(node.path)
        entry.mode = 0
        entry.type = tarfile.DIRTYPE if node.is_dir else tarfile.REGTYPE
        entry.size = 0 if node.is_dir else node.size
        yield entry.tobuf(tarfile.PAX_FORMAT)
        if node.content is not None:
            yield from chunks.read(node.content, name=node.path)
            if node.size % _BLOCK:
                yield bytes(_BLOCK - node.size % _BLOCK)
    yield bytes(2 * _BLOCK)
