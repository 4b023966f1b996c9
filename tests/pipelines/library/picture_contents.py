"""The pictures of a library by true name, read without the code that puts them; and names that are unusual."""

import hashlib
import io
import json
import tarfile

from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from stages.record import block_names
from stages.record.pfs_names import MEMBERS_FILE, escape_path, is_block, unescape

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
    """The pictures of a block by true name."""
    found = {}
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            file = archive.extractfile(member)
            assert file is not None, f"{member.name} is not a file"
            if member.name != MEMBERS_FILE:
                found[unescape(member.name)] = file.read()
    return found


def earlier_blocks(contents: dict[str, bytes], *prefixes: str) -> dict[str, bytes]:
    """Blocks without lists, as earlier versions put them, by PFS name: the leaves of a tree."""
    names = [block_names.file_name(prefix) for prefix in prefixes]
    found = {}
    for block in names:
        whole = io.BytesIO()
        with tarfile.open(fileobj=whole, mode="w") as archive:
            for name, content in sorted(contents.items()):
                if block_names.home(name, names) == block:
                    member = tarfile.TarInfo(escape_path(name))
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
        found[block] = whole.getvalue()
    return found


def library(connection: Connection) -> dict[str, bytes]:
    """Every picture, in a block that does not hide it or a file."""
    found: dict[str, bytes] = {}
    hidden = masked(connection)
    for path, content in Repository(connection, "images").read_all("/**"):
        name = path.strip("/")
        held = untar(content) if is_block(name) else {unescape(name): content}
        shown = {each: content for each, content in held.items() if each not in hidden.get(name, ())}
        assert not found.keys() & shown.keys(), "a picture is in the library twice"
        found |= shown
    return found


def blocks(connection: Connection) -> dict[str, set[str]]:
    """The names in each block, also the hidden ones, by the block's name."""
    files = Repository(connection, "images").read_all("/*")
    return {path.strip("/"): set(untar(content)) for path, content in files if is_block(path)}


def masked(connection: Connection) -> dict[str, set[str]]:
    """The names that each top-level entry hides."""
    masks = Repository(connection, "masks").read_all("/**")
    lines = {path.rpartition("/")[2].partition(".")[0]: content.splitlines() for path, content in masks}
    entries = (path.strip("/") for path in Repository(connection, "images").list())
    sources = {hashlib.sha256(entry.encode()).hexdigest()[:16]: entry for entry in entries}
    assert lines.keys() <= sources.keys(), "a mask has no block"
    assert all(lines.values()), "a mask hides nothing"
    return {sources[source]: set(map(json.loads, of)) for source, of in lines.items()}
