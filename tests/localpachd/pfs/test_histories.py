"""Random histories of commits, moves, deletions, squashes and transactions against a reference model: after each step
everything is as in the model, and fsck complains only of heads that were moved by hand."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from hypothesis import currently_in_test_context, event, example, given, settings, strategies as st

from localpachd import ids
from localpachd.database import Database
from localpachd.errors import PachError
from localpachd.pfs import branches, commit_removal, commits, contents, repos
from localpachd.pfs.files import file_modification
from localpachd.pfs.pfs_entities import Branch, Commit, Repo
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.transaction import Transaction
from localpachd.pfs.upkeep import fsck
from localpachd.pfs.upkeep.retention import merge_hidden
from localpachd.storage.chunk_store import ChunkStore
from localpachd.storage.filesets import DEFAULT_TAG
from localpachd.storage.garbage_collector import sweep
from tests.example_counts import examples
from tests.localpachd.pfs.reference_model import Key, ReferenceModel, RefusedError, Request
from tests.localpachd.pfs.request_chooser import INPUTS, KINDS, NAMES, RequestChooser


def repo(name: str) -> Repo:
    return Repo("default", name)


def branch(key: Key) -> Branch:
    return Branch(repo(key[0]), key[1])


def commit(key: Key) -> Commit:
    return Commit(repo(key[0]), key[1])


RUN: dict[str, Callable[..., object]] = {
    "create_repo": lambda txn, name: repos.create(txn, repo(name)),
    "delete_repo": lambda txn, name, force: repos.delete(txn, repo(name), force),
    "start": lambda txn, *key: commits.start(txn, branch(key)),
    "finish": lambda txn, key, error: commits.finish(
        txn, commits.resolve(txn.conn, commit(key)), "spoilt" if error else ""
    ),
    "create_branch": lambda txn, in_, name, head, above: branches.create(
        txn, branch((in_, name)), commit(head) if head else None, [branch(each) for each in above]
    ),
    "delete_branch": lambda txn, in_, name, force: branches.delete(txn, branch((in_, name)), force),
    "squash_set": commit_removal.squash_set,
    "drop_set": commit_removal.drop_set,
    "squash": lambda txn, key, recursive: commit_removal.squash(txn, commit(key), recursive),
    "drop": lambda txn, key, recursive: commit_removal.drop(txn, commit(key), recursive),
}


Act = tuple[str, int, int, int]


class World:
    """A pfs room, the model of its content, and perhaps an open transaction."""

    def __init__(self, pfs: PfsService) -> None:
        self.pfs = pfs
        self.model = ReferenceModel()
        self.pending: tuple[str, list[Request]] | None = None
        self.do([("create_repo", (name,)) for name in "abcde"])
        self.do([("create_branch", ("b", "master", None, [("a", "master")]))])
        self.do([("create_branch", ("d", "master", None, [("b", "master")]))])
        self.finish_open()

    def act(self, name: str, x: int, y: int, z: int) -> None:
        """Performs an act, or adds it to the open transaction."""
        special: dict[str, Callable[[int, int, int], object]] = {
            "put": self.put,
            "fill": self.fill,
            "work": self.work,
            "spoil": self.spoil,
        }
        special |= {"begin": self.begin, "end": self.end, "merge": lambda *_: merge_hidden(self.pfs.db)}
        if name in special:
            special[name](x, y, z)
        elif z % 3 and self.pending is not None:
            self.add(name, x, y, z)
        elif request := self.choose(ids.new_id(), [], name, x, y, z):
            self.do([request])

    def choose(self, id_: str, before: Sequence[Request], name: str, x: int, y: int, z: int) -> Request | None:
        """A request that can follow others in a step; most of the time one that succeeds."""
        try:
            draft = self.model.after(id_, before, whole=False)
        except RefusedError:
            draft = self.model  # the earlier requests of the step are refused by now
        request = None
        for shift in range(1 if y % 4 == 0 else 12):
            arguments = getattr(RequestChooser(draft, x + shift, y, z), name)()
            if arguments is None:
                return None
            request = KINDS.get(name, name), arguments
            if isinstance(self.expected(id_, [*before, request]), ReferenceModel):
                break
        return request

    def do(self, requests: Sequence[Request], id_: str = "") -> None:
        """Runs requests as one step, which must be refused if and where the model refuses it."""
        id_ = id_ or ids.new_id()
        expected = self.expected(id_, requests)
        found = self.refusal(lambda: self.pfs.transact(self.step(requests), id_))
        assert found == (expected.at if isinstance(expected, RefusedError) else "done"), requests
        if currently_in_test_context():
            event(f"{requests[0][0] if len(requests) == 1 else f'{len(requests)} requests'}: {found}")
        if isinstance(expected, ReferenceModel):
            self.model = expected

    def expected(self, id_: str, requests: Sequence[Request]) -> ReferenceModel | RefusedError:
        try:
            return self.model.after(id_, requests)
        except RefusedError as error:
            return error

    def step(self, requests: Sequence[Request]) -> Callable[[Transaction], None]:
        def run(txn: Transaction) -> None:
            for self.at, (name, arguments) in enumerate(requests):
                RUN[name](txn, *arguments)
            self.at = None

        return run

    def refusal(self, call: Callable[[], object]) -> int | str | None:
        """The index of the request that the server refuses, None if it refuses the step as a whole, or "done"."""
        try:
            call()
        except PachError:
            return self.at
        return "done"

    def begin(self, x: int, y: int, z: int) -> None:
        self.pending = self.pending or (ids.new_id(), [])

    def add(self, name: str, x: int, y: int, z: int) -> None:
        """Adds a request to the open transaction if it succeeds after those before it."""
        assert self.pending is not None
        id_, kept = self.pending
        request = self.choose(id_, kept, name, x, y, z)
        if request is None:
            return
        requests = [*kept, request]
        expected = self.expected(id_, requests)
        found = self.refusal(lambda: self.pfs.transact(lambda txn: self.pfs.dry_run(txn, self.step(requests), id_)))
        assert found == (expected.at if isinstance(expected, RefusedError) else "done"), requests
        if found == "done":
            kept.append(request)

    def transaction(self, acts: Sequence[Act]) -> None:
        """Opens a transaction, fills it and finishes it, with no other steps between."""
        self.begin(0, 0, 0)
        for act in acts:
            self.add(*act)
            self.check()
        self.end(0, 0, 0)

    def end(self, x: int, y: int, z: int) -> None:
        if self.pending is not None and self.pending[1]:
            id_, kept = self.pending
            self.do(kept, id_)
            self.pending = None

    def work(self, x: int, y: int, z: int) -> None:
        """Puts a file and finishes everything downstream."""
        self.put(x, y, z)
        self.finish_open()

    def spoil(self, x: int, y: int, z: int) -> None:
        """Makes a failed commit with a file in it."""
        key = (INPUTS[x % 4], NAMES[z % 3])
        self.do([("start", key)])
        line = self.model.branches.get(key)
        if line is not None and line.head is not None and self.model.commits[line.head].open:
            self.put(x, y, z)
            self.do([("finish", (line.head, True))])

    def finish_open(self) -> None:
        """Finishes every open commit, as jobs would."""
        for key in [key for key, known in self.model.commits.items() if known.open]:
            self.do([("finish", (key, False))])

    def put(self, x: int, y: int, z: int) -> None:
        """Overwrites or removes a file on a branch, in a new commit or in the open one."""
        key = (INPUTS[x % 4], NAMES[z % 3])
        path, data = f"/{x % 5}", bytes([y]) * (y % 3) if y % 4 else None
        change: list[file_modification.FileChange] = [file_modification.FileRemoval(path, DEFAULT_TAG)]
        if data is not None:
            change.append(file_modification.FileAddition(path, DEFAULT_TAG, self.pfs.chunks.store([data])))
        target = Commit(repo(key[0]), branch=key[1])
        line = self.model.branches.get(key)
        if line is not None and line.head is not None and self.model.commits[line.head].open:
            if self.model.read(line.head) is not None:
                file_modification.modify(self.pfs, target, change)
                self.model.commits[line.head].written[path] = data
            return
        expected = self.expected("", [("start", key)])
        found = self.refusal(lambda: file_modification.modify(self.pfs, target, change))
        assert (found == "done") is isinstance(expected, ReferenceModel)
        if isinstance(expected, ReferenceModel):
            with self.pfs.db.read() as conn:
                id_ = commits.resolve(conn, target).commit.id
            draft = self.model.after(id_, [("start", key)], whole=False)
            draft.commits[key[0], id_].written[path] = data
            draft.finish((key[0], id_), False)
            draft.complete()
            self.model = draft

    def fill(self, x: int, y: int, z: int) -> None:
        """Writes into an open output, as a job does."""
        key = RequestChooser(self.model, x, y, z).key(lambda key: self.model.commits[key].open)
        if key is not None:
            path, data = f"/out{y % 3}", bytes([y])
            with self.pfs.db.read() as conn:
                info = commits.resolve(conn, commit(key))
            content = self.pfs.chunks.store([data])
            self.pfs.transact(lambda txn: contents.add_layer(txn, info, [(path, DEFAULT_TAG, content)]))
            self.model.commits[key].written[path] = data

    at: int | None = None

    def check(self) -> None:
        self.check_branches()
        self.check_commits()
        self.check_fsck()

    def check_branches(self) -> None:
        with self.pfs.db.read() as conn:
            found = {
                (info.branch.repo.name, info.branch.name): (
                    (info.head.repo.name, info.head.id),
                    {(each.repo.name, each.name) for each in info.direct_provenance},
                )
                for info in branches.list_all(conn)
            }
            assert {info.repo.name for info in repos.list_all(conn)} == self.model.repos
        assert found == {key: (line.head, set(line.above)) for key, line in self.model.branches.items()}

    def check_commits(self) -> None:
        with self.pfs.db.read() as conn:
            rows = conn.execute("SELECT seq FROM commits ORDER BY seq").fetchall()
            infos = {
                (info.commit.repo.name, info.commit.id): info for row in rows if (info := commits.by_seq(conn, row[0]))
            }
            assert set(infos) == set(self.model.commits)
            for key, known in self.model.commits.items():
                info = infos[key]
                assert (info.parent and (info.parent.repo.name, info.parent.id)) == known.parent
                assert {(each.repo.name, each.id) for each in info.provenance} == known.provenance
                assert (info.finished is None, bool(info.error)) == (known.open, known.error)
                assert info.commit.branch == known.branch
                content = self.model.read(key)
                if content is not None:
                    files = contents.fileset(conn, info).walk()
                    found = {each.path: b"".join(self.pfs.chunks.read(each.content)) for each in files}
                    assert found == content

    def check_fsck(self) -> None:
        with self.pfs.db.read() as conn:
            complaints = set(fsck.check(conn))
        assert complaints == {
            f"consistency error: parent branch {branch(above)} commit is not in direct provenance of head of branch "
            f"{branch(key)}"
            for key in self.model.branches
            for above in self.model.missing(key)
        }
        assert all(line.by_hand or not self.model.missing(key) for key, line in self.model.branches.items())


STEPS = (
    "work", "work", "work", "work", "work", "put", "put", "spoil", "start", "start", "fill", "finish", "finish",
    "move", "move", "rewire", "rewire", "squash_set", "squash_set", "squash_set", "squash", "squash", "drop_set",
    "drop", "delete_branch", "delete_repo", "create_repo", "begin", "begin", "begin", "end", "end",
    "merge", "merge",
)  # fmt: skip
PARTS = (
    "start", "start", "finish", "move", "move", "move", "rewire", "rewire", "squash_set", "squash_set", "squash",
    "drop_set", "delete_branch", "delete_repo", "create_repo",
)  # fmt: skip
NUMBERS = (st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
ACTS = st.tuples(st.sampled_from(STEPS), *NUMBERS)
TRANSACTIONS = st.lists(st.tuples(st.sampled_from(PARTS), *NUMBERS), min_size=2, max_size=5)
HISTORIES = st.lists(st.one_of(ACTS, ACTS, ACTS, TRANSACTIONS), min_size=10, max_size=30)


@contextmanager
def room() -> Iterator[PfsService]:
    with tempfile.TemporaryDirectory() as root:
        db, chunks = Database(Path(root) / "pachd.sqlite"), ChunkStore(Path(root) / "chunks")
        yield PfsService(db, chunks)
        chunks.close()
        db.close()


def moved_back(world: World, above: str) -> Key:
    """Gives f.side provenance, and puts it back by hand to its first commit, which has a child."""
    wired = ("create_branch", ("f", "side", None, [(above, "master")]))
    world.do([("create_repo", ("f",)), wired])
    first = world.model.head(("f", "side"))
    world.finish_open()
    world.put(0 if above == "a" else 1, 1, 0)
    world.finish_open()
    world.do([("create_branch", ("f", "side", first, [(above, "master")]))])
    return first


def test_a_branch_that_loses_its_head_shares_no_commit_with_other_provenance() -> None:
    with room() as pfs:
        world = World(pfs)
        first = moved_back(world, "a")
        world.do([("delete_repo", ("e", False)), ("start", ("f", "master")), ("squash_set", (first[1],))])
        world.check()
        assert first in world.model.commits
        world.do([("create_branch", ("f", "kept", first, ())), ("squash_set", (first[1],))])
        world.check()
        assert world.model.head(("f", "kept")) == world.model.head(("f", "side")) != first


def test_a_commit_made_for_one_branch_gets_no_provenance_of_another() -> None:
    with room() as pfs:
        world, id_ = World(pfs), ids.new_id()
        world.do([("create_repo", ("f",)), ("create_branch", ("f", "side", None, [("c", "master")]))])
        world.finish_open()
        wired = ("create_branch", ("f", "master", None, [("a", "master")]))
        moved = ("create_branch", ("f", "side", ("f", id_), [("c", "master")]))
        world.do([("start", ("a", "master")), ("start", ("c", "master")), wired, moved], id_)
        world.check()
        assert not any(key[1] == id_ for key in world.model.commits)


@settings(max_examples=examples(40))
@example([("put", 2, 5, 0), ("put", 2, 6, 0), ("spoil", 2, 7, 0), ("start", 2, 0, 0), ("squash", 1, 0, 0)])
@example([[("rewire", 1, 1, 0), ("start", 0, 0, 0)]])  # made in a transaction before the branch upstream moves in it
@example([("rewire", 0, 4, 0)])  # in a circle
@given(HISTORIES)
def test_histories(history: Sequence[Act | list[Act]]) -> None:
    with room() as pfs:
        world = World(pfs)
        for act in history:
            if isinstance(act, list):
                world.transaction(act)
            else:
                world.act(*act)
            world.check()
        sweep(pfs.db, pfs.chunks)
        world.check()
