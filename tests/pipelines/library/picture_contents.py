"""The pictures of a library by true name, read without the code that puts them; and names that are unusual."""

import io
import tarfile

from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from stages.record import block_names
from stages.record.pfs_names import unescape

ODD = [
    "with spaces.jpg",
    "both 'kinds' of \"quotes\".jpg",
    "# not a comment.jpg",
    "back\\slash.jpg",
    "[brackets] {braces} (more).jpg",
    "*?!@+^.jpg",
    "😀 emoji.jpg",
    "ünïcödé.jpg",
    "...",
    "..jpg",
    "%2F.jpg",
    "%names",
    "-rf",
    "tab\there\nnewline.jpg",
    "not \udcff utf-8.jpg",
    "a/" + "very long " * 25 + "/" + "x" * 255,
    "😀" * 63,
]


def untar(content: bytes) -> dict[str, bytes]:
    """The members of a block by true name."""
    found = {}
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            file = archive.extractfile(member)
            assert file is not None, f"{member.name} is not a file"
            found[unescape(member.name)] = file.read()
    return found


def library(connection: Connection) -> dict[str, bytes]:
    """Every picture, in a block or a file."""
    found: dict[str, bytes] = {}
    for path, content in Repository(connection, "images").read_all("/**"):
        name = path.strip("/")
        held = {unescape(name): content} if block_names.prefix_of(name) is None else untar(content)
        assert not found.keys() & held.keys(), "a picture is in the library twice"
        found |= held
    return found


def leaves(connection: Connection) -> dict[str, set[str]]:
    """The names in each block, by the block's prefix."""
    found = {}
    for path, content in Repository(connection, "images").read_all("/*"):
        prefix = block_names.prefix_of(path.strip("/"))
        if prefix is not None:
            found[prefix] = set(untar(content))
    return found
