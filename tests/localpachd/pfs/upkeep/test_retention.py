"""Old commits that nothing needs: their age, their choice, and what the others keep."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from localpachd.database import Database
from localpachd.maintenance import main
from localpachd.pfs import branches, commits, contents, repos
from localpachd.pfs.pfs_entities import Branch, Commit, CommitInfo, Repo
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.transaction import Transaction
from localpachd.pfs.upkeep import fsck, retention
from localpachd.pfs.upkeep.retention import CommitAges, newest_of_age
from localpachd.storage import garbage_collector
from localpachd.storage.chunk_store import ChunkStore
from localpachd.storage.filesets import DEFAULT_TAG
from tests.example_counts import examples

A, B, MODELS, TIP = (Repo("default", name) for name in ("a", "b", "models", "tip"))
DAY = 86400.0


class Clocks:
    """The machine's clock, and the one that only runs."""

    def __init__(self) -> None:
        self.wall, self.steady = 1_000_000.0, 50.0

    def run(self, days: float) -> None:
        self.wall += days * DAY
        self.steady += days * DAY


def ages(pfs: PfsService, clocks: Clocks) -> CommitAges:
    return CommitAges(pfs.db, lambda: clocks.wall, lambda: clocks.steady)


def days_pass(pfs: PfsService, number: int) -> None:
    """Lets a server see days pass."""
    clocks = Clocks()
    seen = ages(pfs, clocks)
    seen.look()
    for _ in range(number):
        clocks.run(1)
        seen.look()


def master(of: Repo) -> Branch:
    return Branch(of, "master")


def graph(pfs: PfsService) -> None:
    """b is made from a, and tip from b and models."""

    def step(txn: Transaction) -> None:
        for repo in (A, B, MODELS, TIP):
            repos.create(txn, repo)
        branches.create(txn, master(B), provenance=[master(A)])
        branches.create(txn, master(TIP), provenance=[master(B), master(MODELS)])

    pfs.transact(step)
    settle(pfs, b"", "")


def put(pfs: PfsService, repo: Repo, data: bytes, error: str = "", description: str = "") -> str:
    """The id of a commit with a file, after all that it leads to was computed, or failed with the error."""
    content = pfs.chunks.store([data])
    pfs.chunks.flush()

    def step(txn: Transaction) -> str:
        info = commits.start(txn, master(repo), description=description)
        contents.add_layer(txn, info, [(f"/{data.decode()}", DEFAULT_TAG, content)])
        commits.finish(txn, info)
        return txn.id

    made = pfs.transact(step)
    settle(pfs, data, error)
    return made


def point(pfs: PfsService, branch: Branch, commit_set: str) -> None:
    """Lets a branch point at a commit of its repo."""
    pfs.transact(lambda txn: branches.create(txn, branch, Commit(branch.repo, commit_set)))


def settle(pfs: PfsService, data: bytes, error: str) -> None:
    content = pfs.chunks.store([b"made of " + data])
    pfs.chunks.flush()

    def step(txn: Transaction) -> None:
        rows = txn.conn.execute("SELECT seq FROM commits WHERE finished IS NULL ORDER BY seq").fetchall()
        for info in commits.by_seqs(txn.conn, [row[0] for row in rows]):
            contents.add_layer(txn, info, [("/result", DEFAULT_TAG, content)])
            commits.finish(txn, info, error=error)

    pfs.transact(step)


def kept(pfs: PfsService) -> set[str]:
    with pfs.db.read() as conn:
        return {row[0] for row in conn.execute("SELECT DISTINCT id FROM commits")}


def everything(pfs: PfsService) -> dict[Commit, tuple[dict[str, bytes], CommitInfo]]:
    """The files of every commit, by its name."""
    with pfs.db.read() as conn:
        seqs = [row[0] for row in conn.execute("SELECT seq FROM commits ORDER BY seq")]
        return {
            info.commit: (
                {file.path: b"".join(pfs.chunks.read(file.content)) for file in contents.fileset(conn, info).walk()},
                info,
            )
            for info in commits.by_seqs(conn, seqs)
        }


def test_old_commits_go_and_heads_stay(pfs: PfsService) -> None:
    graph(pfs)
    old = [put(pfs, A, name) for name in (b"1", b"2", b"3")]
    days_pass(pfs, 32)
    assert retention.squash_old(pfs, 32) == 0
    assert retention.squash_old(pfs, 31) >= 2
    assert kept(pfs) & set(old) == {old[-1]}
    files = next(files for commit, (files, _) in everything(pfs).items() if commit.repo == A and commit.id == old[-1])
    assert files == {"/1": b"1", "/2": b"2", "/3": b"3"}


def test_what_was_made_from_old_sets_goes_before_them(pfs: PfsService) -> None:
    graph(pfs)
    model, first = put(pfs, MODELS, b"m"), put(pfs, A, b"1")  # tip@first was made from models@model

    def both(txn: Transaction) -> None:
        for repo in (A, MODELS):
            commits.finish(txn, commits.start(txn, master(repo)))

    pfs.transact(both)
    settle(pfs, b"both", "")
    days_pass(pfs, 10)
    retention.squash_old(pfs, 5)
    assert not {model, first} & kept(pfs)


def test_a_mark_in_the_description_keeps_a_set(pfs: PfsService) -> None:
    graph(pfs)
    marked = put(pfs, A, b"1", description="before the holidays #keep")
    plain, _ = put(pfs, A, b"2"), put(pfs, A, b"3")
    days_pass(pfs, 10)
    retention.squash_old(pfs, 5)
    assert marked in kept(pfs)
    assert plain not in kept(pfs)


def test_the_last_good_answer_below_a_failed_head_stays(pfs: PfsService) -> None:
    graph(pfs)
    good = put(pfs, A, b"1")
    failed = [put(pfs, A, name, error="no luck") for name in (b"2", b"3")]
    days_pass(pfs, 10)
    retention.squash_old(pfs, 5)
    assert {good, failed[-1]} <= kept(pfs)
    assert failed[0] not in kept(pfs)


def test_open_commits_and_those_below_them_stay(pfs: PfsService) -> None:
    pfs.transact(lambda txn: repos.create(txn, A))
    put(pfs, A, b"1")
    before = pfs.transact(lambda txn: commits.start(txn, master(A))).commit.id
    everything_now = kept(pfs)
    days_pass(pfs, 10)
    assert retention.squash_old(pfs, 5) == 0
    assert kept(pfs) == everything_now
    assert before in everything_now


def test_a_clock_that_is_set_makes_nothing_old(pfs: PfsService) -> None:
    pfs.transact(lambda txn: repos.create(txn, A))
    put(pfs, A, b"1"), put(pfs, A, b"2")
    clocks = Clocks()
    seen = ages(pfs, clocks)
    seen.look()
    clocks.wall += 3650 * DAY  # while the server runs
    assert seen.look() == 0
    clocks.wall += 3650 * DAY  # while it does not: at most a day counts
    assert ages(pfs, clocks).look() == 1
    clocks.wall -= 7300 * DAY
    assert ages(pfs, clocks).look() == 1
    with pfs.db.read() as conn:
        assert newest_of_age(conn, 1) == 0
    assert retention.squash_old(pfs, 1) == 0


def test_the_age_is_never_less_than_the_days(pfs: PfsService) -> None:
    pfs.transact(lambda txn: repos.create(txn, A))
    clocks = Clocks()
    seen = ages(pfs, clocks)
    made: dict[int, float] = {}
    for number in range(40):
        put(pfs, A, str(number).encode())
        with pfs.db.read() as conn:
            made[conn.execute("SELECT MAX(seq) FROM commits").fetchone()[0]] = clocks.steady
        clocks.run(0.3)
        seen.look()
    with pfs.db.read() as conn:
        newest = newest_of_age(conn, 5)
    assert newest
    assert clocks.steady - made[newest] >= 5 * DAY
    younger = min(time for seq, time in made.items() if seq > newest)
    assert clocks.steady - younger < 7.5 * DAY


def test_the_dry_run_lists_what_goes_and_its_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "root"
    (root / "chunks").mkdir(parents=True)
    pfs = PfsService(Database(root / "pachd.sqlite"), ChunkStore(root / "chunks"))
    pfs.transact(lambda txn: repos.create(txn, A))
    gone, kept_one = pfs.chunks.store([b"g" * 1000]), pfs.chunks.store([b"k" * 70_000])
    pfs.chunks.flush()
    made = []
    for content in (gone, kept_one):

        def step(txn: Transaction, content: object = content) -> str:
            info = commits.start(txn, master(A))
            contents.add_layer(txn, info, [("/file", DEFAULT_TAG, None), ("/file", "other", content)])  # type: ignore[list-item]
            commits.finish(txn, info)
            return txn.id

        made.append(pfs.transact(step))
    days_pass(pfs, 10)
    assert main(["retention", str(root), "--days", "5"]) == 0
    said = capsys.readouterr().out
    assert made[0] in said
    assert made[1] not in said
    assert "would squash 1 commit sets and free 1000 bytes" in said
    assert kept(pfs) >= set(made)  # it was not done
    assert main(["retention", str(root), "--days", "50"]) == 0
    assert "have been counted for 10 days: nothing can be older yet" in capsys.readouterr().out
    assert main(["retention", str(root), "--days", "0"]) == 1
    pfs.chunks.close()
    pfs.db.close()


STEPS = st.lists(
    st.sampled_from(("put", "put", "put", "model", "fail", "branch", "mark", "day", "day", "move")), max_size=14
)


@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, days=st.integers(1, 4))
def test_whatever_is_kept_is_whole(tmp_path_factory: pytest.TempPathFactory, steps: Sequence[str], days: int) -> None:
    """After any history: heads, contents and provenance of what is kept are as before, and fsck is content."""
    place = tmp_path_factory.mktemp("kept")
    pfs = PfsService(Database(place / "state.sqlite"), ChunkStore(place / "chunks"))
    clocks = Clocks()
    seen = ages(pfs, clocks)
    graph(pfs)
    history = [put(pfs, A, b"0")]
    for number, step in enumerate(steps, 1):
        name = str(number).encode()
        match step:
            case "put":
                history.append(put(pfs, A, name))
            case "mark":
                history.append(put(pfs, A, name, description="#keep"))
            case "fail":
                history.append(put(pfs, A, name, error="no luck"))
            case "model":
                put(pfs, MODELS, name)
            case "branch":
                point(pfs, Branch(A, f"b{number}"), history[number % len(history)])
            case "move":
                point(pfs, master(A), history[number % len(history)])
                settle(pfs, name, "")
            case "day":
                clocks.run(1)
                seen.look()
    for _ in range(days + 1):
        clocks.run(1)
        seen.look()
    before = everything(pfs)
    heads = _heads(pfs)
    with pfs.db.read() as conn:
        announced = {each.id for each in retention.old_sets(conn, days)}
    assert retention.squash_old(pfs, days) == len(announced)
    garbage_collector.sweep(pfs.db, pfs.chunks)
    after = everything(pfs)
    assert {commit.id for commit in before} - {commit.id for commit in after} == announced
    assert _heads(pfs) == heads
    for commit, (files, info) in after.items():
        assert files == before[commit][0]
        assert info.provenance == before[commit][1].provenance
        assert set(info.provenance) <= set(after)
    with pfs.db.read() as conn:
        assert list(fsck.everything(conn, lambda digest: "" if pfs.chunks.is_whole(digest) else "damaged")) == []
    assert retention.squash_old(pfs, days) == 0
    pfs.chunks.close()
    pfs.db.close()


def _heads(pfs: PfsService) -> list[tuple[int, int]]:
    with pfs.db.read() as conn:
        return [tuple(row) for row in conn.execute("SELECT id, head FROM branches ORDER BY id")]
