"""Trees against a naive recursion over plain dictionaries: hashes, sizes, order, and every reader."""

import io
import tarfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import blake2b

import pytest
from hypothesis import example, given, strategies as st

from localpachd import ids
from localpachd.database import Database
from localpachd.errors import PachError
from localpachd.storage import trees
from localpachd.storage.chunk_store import ChunkStore
from localpachd.storage.filesets import FileContent, FileSet, write_layer
from localpachd.storage.trees import TreeNode
from speclang.globs import Glob

Files = dict[str, bytes]
Seen = tuple[str, int, bytes]
"""Path, size, hash."""

element = st.text(st.sampled_from("ab-.0"), min_size=1, max_size=2).filter(lambda name: name not in (".", ".."))
path = st.lists(element, min_size=1, max_size=4).map(lambda elements: "/" + "/".join(elements))
trees_of_files = st.dictionaries(path, st.binary(max_size=3), max_size=14)
bounds = st.none() | path | path.map(lambda found: found + "/")


def h(data: bytes) -> bytes:
    return blake2b(data, digest_size=32).digest()


def naive(files: Files) -> dict[str, Seen]:
    """Every node by its path, straight from the definition."""
    directories = {name[: at + 1] for name in files for at, char in enumerate(name) if char == "/"}

    def node(name: str) -> Seen:
        if not name.endswith("/"):
            data = files[name]
            return name, len(data), h(h(data)) if data else h(b"")
        entries = [
            node(other)
            for other in sorted({*files, *directories})
            if other.startswith(name) and other != name and "/" not in other[len(name) : -1]
        ]
        return name, sum(entry[1] for entry in entries), h(b"".join(entry[2] for entry in entries))

    return {name: node(name) for name in sorted({*files, *directories})}


def bare(name: str) -> str:
    return name.rstrip("/")


def seen(nodes: Iterable[TreeNode]) -> list[Seen]:
    found = list(nodes)
    for node in found:
        assert node.is_dir == node.path.endswith("/") == (node.content is None)
        assert node.content is None or (node.content.size, node.content.hash) == (node.size, node.hash)
        assert node.tag == ("" if node.is_dir else "default")
    return [(node.path, node.size, node.hash) for node in found]


def store(db: Database, chunks: ChunkStore, *layers: Files) -> list[int]:
    stored = [[(name, "default", chunks.store([data])) for name, data in files.items()] for files in layers]
    return [db.write(partial(write_layer, entries=entries)) for entries in stored]


def within(lower: str | None, upper: str | None) -> Callable[[Seen], bool]:
    return lambda node: (lower is None or lower <= node[0]) and (upper is None or node[0] < upper)


@given(trees_of_files, path | st.just("/"), bounds, bounds)
@example({"/a": b"", "/a-": b"x", "/a/b": b"y"}, "/a", None, None)
def test_inspect_children_and_walk(
    db: Database, chunks: ChunkStore, files: Files, at: str, lower: str | None, upper: str | None
) -> None:
    model = naive(files)
    inside = within(lower, upper)
    above = at.rstrip("/") + "/"
    below = [node for name, node in model.items() if name == at or name.startswith(above)]
    entries = [node for node in below if node[0] != above and "/" not in node[0][len(above) : -1]]
    layers = store(db, chunks, files)
    with db.read() as conn:
        fs = FileSet(conn, layers)
        for given_path in (at, above, at.lstrip("/")):
            found = trees.inspect(fs, given_path)
            assert seen([found] if found else []) == [model[name] for name in (bare(at), above) if name in model][:1]
            assert seen(trees.children(fs, given_path)) == entries
            assert seen(trees.walk(fs, given_path)) == below
        assert seen(trees.children(fs, at, lower, upper)) == list(filter(inside, entries))
        assert seen(trees.walk(fs, at, lower, upper)) == list(filter(inside, below))


PATTERNS = [
    "/", "*", "/*", "/**", "/a*", "/a/**", "/*/*", "a/b", "/a", "/a/", "/**a", "/**/a", "/?", "/[!b]*", "/[ab]/*",
    "/{a,b/a}", "/{a,b/**}", "/(*)-(*)", "/!(a*)", "/*(a|/)b", "/a/*/**", "/-", "/**.", "/*/[-0]*",
]  # fmt: skip


@given(trees_of_files, st.sampled_from(PATTERNS), bounds, bounds)
@example({"/a": b"", "/a-": b"x", "/a/b": b"y"}, "/a", None, None)
def test_glob_and_archive(
    db: Database, chunks: ChunkStore, files: Files, pattern: str, lower: str | None, upper: str | None
) -> None:
    model = naive(files)
    inside = within(lower, upper)
    compiled = Glob(pattern)
    matched = [node for name, node in model.items() if compiled.match(bare(name) or "/") is not None]
    roots = tuple(node[0] for node in matched if node[0].endswith("/"))
    # Directories before the range do not count, so nor do the files below them.
    kept = tuple(node[0] for node in filter(inside, matched) if node[0].endswith("/"))
    layers = store(db, chunks, files)
    with db.read() as conn:
        fs = FileSet(conn, layers)
        assert seen(trees.glob(fs, pattern)) == matched
        assert seen(trees.glob(fs, pattern, lower, upper)) == list(filter(inside, matched))
        assert seen(trees.archive(fs, pattern)) == [
            node for node in model.values() if node in matched or node[0].startswith(roots)
        ]
        assert seen(trees.archive(fs, pattern, lower, upper)) == [
            node for node in model.values() if inside(node) and (node in matched or node[0].startswith(kept))
        ]


@given(trees_of_files, trees_of_files, path | st.just("/"), path | st.just("/"))
def test_diff(db: Database, chunks: ChunkStore, new: Files, old: Files, path_new: str, path_old: str) -> None:
    def below(files: Files, at: str) -> dict[str, Seen]:
        above = at.rstrip("/") + "/"
        return {name: node for name, node in naive(files).items() if name == at or name.startswith(above)}

    (one,), (other,) = store(db, chunks, new), store(db, chunks, old)
    for at in ((path_new, path_new), (path_new, path_old)):
        left, right = below(new, at[0]), below(old, at[1])
        expected = []
        for name in sorted({*left, *right}):
            pair = (left.get(name), right.get(name))
            if pair[0] is None or pair[1] is None or pair[0][2] != pair[1][2]:
                expected.append(pair)
        with db.read() as conn:
            pairs = list(trees.diff(FileSet(conn, [one]), FileSet(conn, [other]), *at))
        assert [(_one(first), _one(second)) for first, second in pairs] == expected


def _one(node: TreeNode | None) -> Seen | None:
    return None if node is None else (node.path, node.size, node.hash)


@given(trees_of_files, trees_of_files)
def test_trees_of_merged_layers(db: Database, chunks: ChunkStore, below: Files, above: Files) -> None:
    layers = store(db, chunks, below, above)
    with db.read() as conn:
        assert seen(trees.walk(FileSet(conn, layers), "/")) == list(naive({**below, **above}).values())


def test_an_empty_file_set_has_no_root(db: Database) -> None:
    with db.read() as conn:
        fs = FileSet(conn, ())
        assert trees.inspect(fs, "/") is None
        for nodes in (trees.walk(fs, "/"), trees.children(fs, "/"), trees.glob(fs, "/"), trees.archive(fs, "/")):
            assert list(nodes) == []


def test_a_directory_hash_does_not_include_names(db: Database, chunks: ChunkStore) -> None:
    layers = store(db, chunks, {"/one/a": b"1", "/one/b": b"2", "/two/c": b"1", "/two/d": b"2"})
    with db.read() as conn:
        one, two = trees.children(FileSet(conn, layers), "/")
    assert one.hash == two.hash


def test_one_path_under_two_tags_is_two_nodes_and_a_tag_selects(db: Database, chunks: ChunkStore) -> None:
    entries = [("/d/f", tag, chunks.store([tag.encode()])) for tag in ("t1", "t2")]
    layer = db.write(lambda conn: write_layer(conn, entries))
    with db.read() as conn:
        fs = FileSet(conn, [layer])
        assert [(node.path, node.tag) for node in trees.walk(fs, "/d")] == [("/d/", ""), ("/d/f", "t1"), ("/d/f", "t2")]
        assert [node.tag for node in trees.walk(fs.tagged("t2"), "/d/f")] == ["t2"]
        root = trees.inspect(fs.tagged("t1"), "/")
        assert root is not None
        assert root.size == 2


def numbered(count: int) -> Iterator[str]:
    return (f"/dir{n % 3}/sub/{n:05}" for n in range(count))


@pytest.mark.parametrize(("pattern", "found"), [("/dir1/sub/*", 100), ("/dir*", 3), ("/**/0001?", 10), ("/**", 306)])
def test_more_files_than_one_query_reads(db: Database, chunks: ChunkStore, pattern: str, found: int) -> None:
    content = chunks.store([b"x"])
    layer = db.write(lambda conn: write_layer(conn, ((name, "default", content) for name in numbered(300))))
    with db.read() as conn:
        assert len(list(trees.glob(FileSet(conn, [layer]), pattern))) == found


FILES = {
    "/a.txt": b"hello\n",
    "/d/empty": b"",
    "/d/exact": bytes(range(256)) * 4,
    "/d/big": b"0123456789" * 200_001,
    "/" + "long/" * 60 + "x" * 200: b"far down",
}


def test_a_tree_is_read_back_from_its_tar(db: Database, chunks: ChunkStore) -> None:
    entries = [(path, "default", chunks.store([data])) for path, data in FILES.items()]
    layer = db.write(lambda conn: write_layer(conn, entries))
    with db.read() as conn:
        nodes = list(trees.archive(FileSet(conn, [layer]), "/"))
    pieces = list(trees.tar(nodes, chunks))
    assert max(map(len, pieces)) <= 1 << 20
    raw = b"".join(pieces)
    assert raw.endswith(bytes(1024))
    with tarfile.open(fileobj=io.BytesIO(raw)) as archive:
        members = archive.getmembers()
        # tarfile strips the slash from the names of directories.
        assert [member.name + "/" * member.isdir() for member in members if member.name] == [
            node.path for node in nodes if node.path != "/"
        ]
        assert {(member.mode, member.mtime, member.uid, member.uname) for member in members} == {(0, 0, 0, "")}
        read = {member.name: archive.extractfile(member) for member in members if member.isfile()}
        assert {name: file.read() for name, file in read.items() if file} == FILES
    assert raw.startswith(b"/\0")


def test_an_empty_tar_is_only_its_end(chunks: ChunkStore) -> None:
    assert list(trees.tar([], chunks)) == [bytes(1024)]


def test_a_missing_chunk_stops_the_stream(db: Database, chunks: ChunkStore) -> None:
    gone = FileContent(3, (ids.chunk_hash(b"never stored"),))
    layer = db.write(lambda conn: write_layer(conn, [("/a", "default", gone)]))
    with db.read() as conn, pytest.raises(PachError, match="not in the store"):
        list(trees.tar(trees.archive(FileSet(conn, [layer]), "/*"), chunks))
