"""`lookalike export` and `import` as processes: pipes, signals, full disks and messages."""

import json
import os
import pty
import random
import signal
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from pipelines.client.commit_history import CommitHistory
from pipelines.client.repository import PutFile, Repository
from pipelines.client.server.connection import Connection
from tests.command import Command
from tests.conditions import until
from tests.pipelines.transfer.libraries import put

pytestmark = pytest.mark.late_alone

BIG = random.Random(0).randbytes(3 << 20)
"""More than a pipe holds."""


@pytest.fixture
def history(as_user: Connection) -> Connection:
    """A library of three commits, the second one big; the command talks to its server."""
    for repo in ("images", "queries", "models"):
        as_user.client.create_repo(repo, project_name=as_user.project)
    put(as_user, "images", a="one", b="two")
    Repository(as_user, "images").write([PutFile("/big", BIG)])
    put(as_user, "queries", q="two")
    return as_user


@pytest.fixture
def there(other: Connection, command: Command, tmp_path: Path) -> Command:
    """The command, talking to the other project."""
    context = {"pachd_address": other.address, "project": other.project}
    (tmp_path / "there.json").write_text(json.dumps({"v2": {"active_context": "t", "contexts": {"t": context}}}))
    return replace(command, environment={"PACH_CONFIG": str(tmp_path / "there.json")})


def written_to(connection: Connection) -> str:
    """The first line of an import."""
    return f"writing to {connection.address}, pachctl's context t, project {connection.project}\n"


def hashes(connection: Connection) -> list[dict[str, bytes]]:
    """The files of every commit of images and queries."""
    return [
        Repository(connection, repo, each.id).hashes("/")
        for repo in ("images", "queries")
        for each in CommitHistory(connection).commits(repo)
    ]


def test_an_export_to_a_file(history: Connection, other: Connection, command: Command, there: Command) -> None:
    assert command.says("export", "library.tar") == (
        "wrote 3 commits with 4 files, and the hashes of the output of 0 pipelines, to library.tar\n"
    )
    ids = f"{written_to(other)}imported 3 commits\ntheir ids there and here: ids.tsv\n"
    assert there.says("import", "library.tar", "--ids", "ids.tsv") == ids
    assert (command.directory / "ids.tsv").read_text().count("\n") == 4
    assert hashes(other) == hashes(history)


def test_an_export_through_a_pipe(history: Connection, other: Connection, command: Command, there: Command) -> None:
    out = command.start("export", "-")
    brought = there.start("import", "-", stdin=out.stdout.fileno() if out.stdout else None)
    if out.stdout is not None:
        out.stdout.close()
    said, complained = brought.communicate(timeout=60)
    assert (brought.returncode, said, complained) == (0, f"{written_to(other)}imported 3 commits\n", "")
    assert out.stderr is not None
    assert out.stderr.read() == (
        "wrote 3 commits with 4 files, and the hashes of the output of 0 pipelines, to the standard output\n"
    )
    assert out.wait(60) == 0
    out.stderr.close()
    assert hashes(other) == hashes(history)


def test_a_closed_pipe_ends_an_export_with_one_sentence(history: Connection, command: Command) -> None:
    out = command.start("export", "-")
    assert out.stdout is not None and out.stderr is not None
    os.read(out.stdout.fileno(), 100)
    out.stdout.close()
    assert out.stderr.read() == ("lookalike: the program that reads the export has ended; it does not have all of it\n")
    assert out.wait(60) == 1
    out.stderr.close()


def test_a_full_disk_ends_an_export_with_one_sentence(history: Connection, command: Command) -> None:
    with Path("/dev/full").open("wb") as full:
        out = command.start("export", "-", stdout=full.fileno())
        _, complained = out.communicate(timeout=60)
    assert (out.returncode, complained) == (1, "lookalike: cannot write the export: No space left on device\n")
    assert command.fails("export", "missing/library.tar") == (
        "cannot write missing/library.tar.part: No such file or directory"
    )


def test_terminals_and_directories_are_refused(history: Connection, command: Command, there: Command) -> None:
    ours, theirs = pty.openpty()
    try:
        out = command.start("export", "-", stdout=theirs)
        refused = "lookalike: an export is not for a terminal: name a file, or pipe it to a program\n"
        assert out.communicate(timeout=60)[1] == refused
        brought = there.start("import", "-", stdin=theirs)
        refused = "lookalike: nothing is piped in: name the file that `lookalike export` wrote\n"
        assert brought.communicate(timeout=60)[1] == refused
    finally:
        os.close(ours)
        os.close(theirs)
    (command.directory / "backup").mkdir()
    assert there.fails("import", "backup") == "backup is a directory: name the file that `lookalike export` wrote"
    assert there.fails("import", "missing.tar") == "missing.tar: No such file or directory"
    (command.directory / "letter.txt").write_text("dear reader")
    assert there.fails("import", "letter.txt") == (
        "letter.txt is not an exported library: `lookalike export` writes one"
    )


@pytest.fixture
def half(history: Connection, other: Connection, command: Command, there: Command) -> "subprocess.Popen[str]":
    """An import that has got an export up to the middle of the second commit."""
    command.says("export", "library.tar")
    whole = (command.directory / "library.tar").read_bytes()
    brought = there.start("import", "-", stdin=subprocess.PIPE, interruptible=True)
    assert brought.stdin is not None
    with os.fdopen(os.dup(brought.stdin.fileno()), "wb") as pipe:
        pipe.write(whole[: len(whole) // 2])
    until(lambda: CommitHistory(other).commits("images") or brought.poll() is not None)
    assert brought.poll() is None
    return brought


def test_a_cut_stream_leaves_whole_commits(
    half: "subprocess.Popen[str]", history: Connection, other: Connection, there: Command
) -> None:
    _, complained = half.communicate(timeout=60)
    assert half.returncode == 1
    assert complained.startswith("lookalike: the standard input ends early or is damaged in commit ")
    assert complained.endswith(
        "; imported the first 1 of its 3 commits: export or copy the file again, and importing it continues there\n"
    )
    continued(history, other, there)


def test_ctrl_c_leaves_whole_commits(
    half: "subprocess.Popen[str]", history: Connection, other: Connection, there: Command
) -> None:
    half.send_signal(signal.SIGINT)
    said, complained = half.communicate(timeout=60)
    assert half.returncode == 130
    assert "Traceback" not in said + complained
    assert CommitHistory(other).left_open("images") is None
    continued(history, other, there)


def test_an_import_that_was_killed_continues(
    half: "subprocess.Popen[str]", history: Connection, other: Connection, there: Command
) -> None:
    half.kill()
    half.communicate(timeout=60)
    assert CommitHistory(other).left_open("images") is None
    continued(history, other, there)


def test_an_import_beside_another_stops_where_that_has_gone_on(
    half: "subprocess.Popen[str]", history: Connection, other: Connection, command: Command, there: Command
) -> None:
    assert there.says("import", "library.tar") == f"{written_to(other)}imported 3 commits\n"
    assert half.stdin is not None
    whole = (command.directory / "library.tar").read_bytes()
    with os.fdopen(os.dup(half.stdin.fileno()), "wb") as pipe:
        pipe.write(whole[len(whole) // 2 :])
    _, complained = half.communicate(timeout=60)
    newest = CommitHistory(other).commits("images")[-1].id
    assert (half.returncode, complained) == (
        1,
        "lookalike: others write to the library at the same time, perhaps another import (commit "
        f"{newest}); this one has stopped, and made nothing twice: run it again when the other has ended, and it "
        "continues there\n",
    )
    assert hashes(other) == hashes(history)


def test_imports_at_the_same_time_make_every_commit_once(
    history: Connection, other: Connection, command: Command, there: Command
) -> None:
    for number in range(12):
        put(history, ("images", "queries")[number % 2], a=str(number))
    command.says("export", "library.tar")
    both = [there.start("import", "library.tar") for _ in range(3)]
    told = [each.communicate(timeout=60) for each in both]
    codes = [each.returncode for each in both]
    assert 0 in codes
    for code, (_, complained) in zip(codes, told, strict=True):
        assert (code, complained) == (0, "") or (code == 1 and "made nothing twice: run it again" in complained)
    assert hashes(other) == hashes(history)
    assert there.says("import", "library.tar").endswith("imported 15 commits\n")
    assert hashes(other) == hashes(history)


def continued(history: Connection, other: Connection, there: Command) -> None:
    """The first commit is here and only that one; another import makes the rest."""
    (first,) = CommitHistory(other).commits("images")
    assert there.says("import", "library.tar") == f"{written_to(other)}imported 3 commits\n"
    assert CommitHistory(other).commits("images")[0] == first
    assert hashes(other) == hashes(history)
