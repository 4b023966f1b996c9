"""All ids and hashes of localpachd: random ids, content hashes, datum ids and datum hashes.

The encodings follow Pachyderm 2.7.8 (`src/server/worker/common/common.go`, `src/internal/uuid/uuid.go`): equal data
has equal hashes on both engines for every file below one chunk.
"""

import re
import uuid
from collections.abc import Iterable
from functools import cache
from hashlib import blake2b

CHUNK_SIZE = 8 << 20
"""Bytes of every chunk of a file except its last. Fixed, so that a file's hash depends only on its content."""

BytesLike = bytes | bytearray | memoryview

_UUID = re.compile(r"[0-9a-f]{12}4[0-9a-f]{19}")


def new_id() -> str:
    """A fresh commit-set, job or transaction id: UUIDv4 hex without dashes."""
    return uuid.uuid4().hex


def is_id(text: str) -> bool:
    """Whether a string is an id rather than a branch name."""
    return _UUID.fullmatch(text) is not None


def chunk_hash(*parts: BytesLike) -> bytes:
    """blake2b-256 of a chunk's bytes (32 bytes), which may come in parts."""
    digest = blake2b(digest_size=32)
    for each in parts:
        digest.update(each)
    return digest.digest()


@cache
def hole_hash() -> bytes:
    """The hash of a whole chunk of zeros (32 bytes)."""
    return chunk_hash(bytes(CHUNK_SIZE))


def file_hash(chunks: Iterable[bytes]) -> bytes:
    """blake2b-256 over a file's chunk hashes in order (32 bytes)."""
    return blake2b(b"".join(chunks), digest_size=32).digest()


def directory_hash() -> blake2b:
    """A directory's running hash (32 bytes), to be updated with the hash of each of its entries in path order. Names
    are not included."""
    return blake2b(digest_size=32)


def datum_id(inputs: Iterable[tuple[str, str, str, str]]) -> str:
    """A datum's id, 64 hex characters, from each input's (name, repo, branch, path)."""
    digest = blake2b(digest_size=32)
    for fields in inputs:
        for field in fields:
            encoded = field.encode()
            digest.update(encoded)
            digest.update(len(encoded).to_bytes(8, "big"))
    return digest.hexdigest()


def datum_hash(identity: str, file_hashes: Iterable[bytes], salt: str) -> str:
    """The hash that decides whether a datum may be skipped, 64 hex characters."""
    return blake2b(b"".join((identity.encode(), *file_hashes, salt.encode())), digest_size=32).hexdigest()
