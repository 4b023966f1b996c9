"""Random histories of commits, moves of branches, squashes and drops against dictionaries; fsck is clean after each."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from localpachd.db import Database
from localpachd.errors import PachError
from localpachd.pfs import branches, commits, contents, fsck, modify, removal, repos, staging
from localpachd.pfs.service import Pfs
from localpachd.pfs.values import Branch, Commit, CommitInfo, Repo
from localpachd.storage.chunks import Chunks
from localpachd.storage.filesets import DEFAULT_TAG
from localpachd.storage.gc import sweep

A, B, C, D, E = (Repo("default", name) for name in "abcde")
INPUTS = (A, C, E, E)  # nothing is made from the last
UPSTREAM = ([A], [C], [A, C])
Content = dict[str, bytes]


@dataclass
class Known:
    """What a commit is expected to be. `content` is None while it cannot be read: what it stands on is open."""

    parent: int | None
    provenance: frozenset[int]
    finished: bool
    error: bool
    content: Content | None = None


class World:
    """A pfs room and what it ought to hold, by the sequence numbers of commits."""

    def __init__(self, pfs: Pfs) -> None:
        self.pfs = pfs
        self.known: dict[int, Known] = {}
        self.ids: dict[int, str] = {}
        for repo in (A, B, C, D, E):
            pfs.transact(lambda txn, repo=repo: repos.create(txn, repo))
        self.rewire(0, 0)
        pfs.transact(lambda txn: branches.create(txn, Branch(D, "master"), provenance=[Branch(B, "master")]))
        self.learn()

    def infos(self) -> list[CommitInfo]:
        with self.pfs.db.read() as conn:
            return [commits.by_seq(conn, row[0]) for row in conn.execute("SELECT seq FROM commits ORDER BY seq")]

    def learn(self) -> None:
        """Takes in what the last step made and settled, and works out what became readable."""
        infos = self.infos()
        seqs = {(info.commit.repo, info.commit.id): info.seq for info in infos}
        for info in infos:
            parent = seqs[info.parent.repo, info.parent.id] if info.parent else None
            provenance = frozenset(seqs[each.repo, each.id] for each in info.provenance)
            if info.seq not in self.known:
                self.known[info.seq] = Known(parent, provenance, info.finished is not None, bool(info.error))
                self.ids[info.seq] = info.commit.id
                if info.finished is not None and info.origin == "AUTO":
                    self.known[info.seq].content = {}
            known = self.known[info.seq]
            assert (known.parent, known.provenance) == (parent, provenance)
            known.finished, known.error = info.finished is not None, bool(info.error)
        for seq in sorted(self.known):
            if self.known[seq].content is None:
                self.known[seq].content = self.inherited(seq)

    def inherited(self, seq: int) -> Content | None:
        parent = self.known[seq].parent
        while parent is not None and self.known[parent].error:
            parent = self.known[parent].parent
        if parent is None:
            return {}
        base = self.known[parent]
        return dict(base.content) if base.finished and base.content is not None else None

    def check(self) -> None:
        with self.pfs.db.read() as conn:
            assert list(fsck.check(conn)) == []
            there = [row[0] for row in conn.execute("SELECT seq FROM commits ORDER BY seq")]
            assert there == sorted(self.known)
            for seq, known in self.known.items():
                if known.content is not None:
                    files = contents.fileset(conn, commits.by_seq(conn, seq)).walk()
                    assert {each.path: b"".join(self.pfs.chunks.read(each.content)) for each in files} == known.content

    def pick(self, repo: Repo | None, x: int, opened: bool = False) -> CommitInfo | None:
        found = [info for info in self.infos() if repo is None or info.commit.repo == repo]
        found = [info for info in found if info.finished is None] if opened else found
        return found[x % len(found)] if found else None

    def put(self, x: int, y: int) -> None:
        """Overwrites or removes a file on an input's branch, in a commit of its own or the one that is open."""
        repo, path, data = INPUTS[x % 4], f"/{x % 5}", bytes([y]) * (y % 3)
        change: list[staging.Change] = [staging.Removal(path, DEFAULT_TAG)]
        if y % 4:
            change.append(staging.Addition(path, DEFAULT_TAG, self.pfs.chunks.store([data])))
        before = set(self.known)
        modify.modify(self.pfs, Commit(repo, branch="master"), change)
        with self.pfs.db.read() as conn:
            head = commits.resolve(conn, Commit(repo, branch="master"))
        if head.seq not in before:
            self.learn_open(head)
        self.write(head.seq, path, data if y % 4 else None)

    def learn_open(self, head: CommitInfo) -> None:
        with self.pfs.db.read() as conn:
            parent = commits.find(conn, head.parent.repo, head.parent.id) if head.parent else None
        self.known[head.seq] = Known(parent.seq if parent else None, frozenset(), False, False)
        self.ids[head.seq] = head.commit.id
        self.known[head.seq].content = self.inherited(head.seq)

    def write(self, seq: int, path: str, data: bytes | None) -> None:
        content = self.known[seq].content
        assert content is not None
        content.pop(path, None)
        if data is not None:
            content[path] = data

    def start(self, x: int, y: int) -> None:
        self.pfs.transact(lambda txn: commits.start(txn, Branch(INPUTS[x % 4], "master")))

    def fill(self, x: int, y: int) -> None:
        """Writes into an open output, as a job does."""
        info = self.pick((B, D)[x % 2], y)
        if info is not None and info.finishing is None and self.known[info.seq].content is not None:
            path, content = f"/out{y % 3}", self.pfs.chunks.store([bytes([y])])
            self.pfs.transact(lambda txn: contents.add_layer(txn, info, [(path, DEFAULT_TAG, content)]))
            self.write(info.seq, path, bytes([y]))

    def finish(self, x: int, y: int) -> None:
        info = self.pick(None, x, opened=True)
        if info is not None:
            self.pfs.transact(lambda txn: commits.finish(txn, info.commit, error="" if y % 3 else "spoilt"))

    def spoil(self, x: int, y: int) -> None:
        """Makes a commit that fails, with something in it."""
        self.start(x, y)
        self.learn()
        self.put(x, y)
        with self.pfs.db.read() as conn:
            head = commits.resolve(conn, Commit(INPUTS[x % 4], branch="master"))
        self.pfs.transact(lambda txn: commits.finish(txn, head.commit, error="spoilt"))

    def move(self, x: int, y: int) -> None:
        repo = INPUTS[x % 4]
        info = self.pick(repo, y)
        name = ("master", "side")[y % 2]
        if info is not None:
            self.pfs.transact(lambda txn: branches.create(txn, Branch(repo, name), head=info.commit))

    def rewire(self, x: int, y: int) -> None:
        above = [Branch(repo, "master") for repo in UPSTREAM[x % 3]]
        self.pfs.transact(lambda txn: branches.create(txn, Branch(B, "master"), provenance=above))

    def squash(self, x: int, y: int) -> None:
        self.remove(x, squash=True)

    def drop(self, x: int, y: int) -> None:
        self.remove(x, squash=False)

    def remove(self, x: int, squash: bool) -> None:
        found = [info for info in self.infos() if bool(info.children) is squash]
        if not found:
            return
        info = found[x % len(found)]
        doomed = {seq for seq in self.known if self.ids[seq] == info.commit.id}
        change = removal.squash_set if squash else removal.drop_set
        expected = self.removable(doomed, squash)
        try:
            self.pfs.transact(lambda txn: change(txn, info.commit.id))
        except PachError as error:
            assert not expected, error
            return
        assert expected, "what had to be refused was done"
        for seq in sorted(doomed):
            self.forget(seq)

    def removable(self, doomed: set[int], squash: bool) -> bool:
        for seq, known in self.known.items():
            if seq not in doomed and known.provenance & doomed:
                return False
            if known.parent in doomed and not (squash and known.finished):
                return False
        return not squash or all(any(each.parent == seq for each in self.known.values()) for seq in doomed)

    def forget(self, seq: int) -> None:
        gone = self.known[seq]
        for other in self.through(seq):
            # What could not be read because it stood on an open commit now reads as that did.
            if self.known[other].content is None and gone.content is not None and not gone.error:
                self.known[other].content = dict(gone.content)
        del self.known[seq]
        for child in self.known.values():
            if child.parent == seq:
                child.parent = gone.parent

    def through(self, seq: int) -> Iterator[int]:
        """The commits that stand on this one, which failed commits do not hide."""
        for each, known in self.known.items():
            if known.parent == seq:
                yield each
                if known.error:
                    yield from self.through(each)


STEPS = ("put", "put", "spoil", "start", "fill", "finish", "finish", "move", "rewire", "squash", "squash", "drop")
ACTS = st.tuples(st.sampled_from(STEPS), st.integers(0, 40), st.integers(0, 40))


@contextmanager
def room() -> Iterator[Pfs]:
    with tempfile.TemporaryDirectory() as root:
        db, chunks = Database(Path(root) / "pachd.sqlite"), Chunks(Path(root) / "chunks")
        yield Pfs(db, chunks)
        chunks.close()
        db.close()


@settings(max_examples=40, deadline=None)
@example([("put", 2, 5), ("put", 3, 6), ("put", 2, 7), ("spoil", 3, 9), ("squash", 2, 0)])  # below a failed commit
@given(st.lists(ACTS, min_size=4, max_size=24))
def test_histories(acts: Sequence[tuple[str, int, int]]) -> None:
    with room() as pfs:
        world = World(pfs)
        for name, x, y in acts:
            with suppress(PachError):  # what is refused has no effect
                getattr(world, name)(x, y)
            world.learn()
            world.check()
        sweep(pfs.db, pfs.chunks)
        world.check()
