"""Datum sets on every backend: their files and variables, their outcomes, their ends."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

import pytest

from localpachd.ids import CHUNK_SIZE
from localpachd.worker.tasks import CancelToken, DatumResult, LogLine, Task
from tests.localpachd.worker.bench import NONE, Bench


def test_a_datum_sees_its_files_and_its_output_is_kept(bench: Bench) -> None:
    given = bench.input("in", "/a/b.txt", {"/a/b.txt": b"hello", "/a/other": b"not asked for"})
    result = bench.one(bench.sh('cat "$in" > "$PFS/out/copy"; mkdir -p "$PFS/out/x/y" "$PFS/out/empty"; echo "$in" '
                          '> "$PFS/out/x/y/name"; ls "$PFS/in/a"'), given)  # fmt: skip
    assert (result.state, result.reason) == ("PROCESSED", "")
    output = bench.output(result)
    assert [*output] == ["/copy", "/x/y/name"]
    assert output["/copy"] == b"hello"
    assert output["/x/y/name"].endswith(b"/in/a/b.txt\n")
    assert bench.said() == ["b.txt"]
    assert result.stats.download_bytes == 5
    assert result.stats.upload_bytes == sum(map(len, output.values()))


def test_a_directory_input_holds_everything_below_it(bench: Bench) -> None:
    content = {"/d/1": b"1", "/d/e/2": b"2", "/dd/3": b"3"}
    below = bench.one(
        bench.sh('cd "$in" && find . -type f | sort > "$PFS/out/list"'), bench.input("in", "/d/", content)
    )
    assert bench.output(below)["/list"] == b"./1\n./e/2\n"
    root = bench.one(bench.sh('cd "$in" && find . -type f | sort > "$PFS/out/list"'), bench.input("in", "/", content))
    assert bench.output(root)["/list"] == b"./d/1\n./d/e/2\n./dd/3\n"
    empty = bench.one(bench.sh('ls -A "$in" > "$PFS/out/list"'), bench.input("in", "/", {}))
    assert bench.output(empty) == {"/list": b""}


def test_pfs_looks_as_on_a_cluster(mounted: Bench) -> None:
    task = mounted.sh("ls -A /pfs; readlink /pfs/in | cut -c1-13; cat /pfs/.env | grep -E '^(in|in_COMMIT|SEEN)='")
    mounted.run(Task(task.cmd, tries=1, env={"SEEN": "yes"}), mounted.datum(mounted.input("in", "/f", {"/f": b""})))
    assert mounted.said() == [
        ".env", ".scratch", "in", "out", "/pfs/.scratch", "SEEN=yes", "in=/pfs/in/f", f"in_COMMIT={'0' * 32}",
    ]  # fmt: skip


def test_each_datum_finds_pfs_clean(bench: Bench) -> None:
    closed = 'mkdir -p "$PFS/dir/closed"; chmod 0 "$PFS/dir/closed" "$PFS/dir"'
    task = bench.sh(f'ls "$PFS"; echo mine > "$PFS/litter"; {closed}; echo x > "$PFS/out/x"')
    first, second = bench.run(task, bench.datum(bench.input("a", "/f", {"/f": b""})), bench.datum())
    assert bench.said() == ["a", "out", "out"]
    assert [first.state, second.state] == ["PROCESSED", "PROCESSED"]


def test_files_of_several_chunks_arrive_whole(bench: Bench) -> None:
    data = os.urandom(1 << 16) * (CHUNK_SIZE >> 16) + b"tail"
    result = bench.one(bench.sh('cp "$in" "$PFS/out/"'), bench.input("in", "/big", {"/big": data}))
    assert bench.output(result) == {"/big": data}
    assert result.output[0].content == bench.chunks.store([data])
    assert len(result.output[0].content.chunks) == 2


def test_group_inputs_share_a_name(bench: Bench) -> None:
    content = {"/1": b"", "/2": b""}
    both = (bench.input("in", "/1", content), bench.input("in", "/2", content))
    result = bench.one(bench.sh('ls "$PFS/in" > "$PFS/out/list"'), *both)
    assert bench.output(result)["/list"] == b"1\n2\n"


def test_empty_files_have_names_only(bench: Bench) -> None:
    result = bench.one(
        bench.sh('cd "$in"; wc -c f/g > "$PFS/out/size"'),
        bench.input("in", "/", {"/f/g": b"content"}, empty_files=True),
    )
    assert bench.output(result)["/size"].split() == [b"0", b"f/g"]
    assert result.stats.download_bytes == 0


def test_variables_reach_the_process_whatever_their_names(bench: Bench) -> None:
    script = "import os; print(os.environ['dashed-name'], os.environ['dashed-name_COMMIT'][:2], os.environ['PLAIN'])"
    task = Task(("python3", "-c", script), env={"PLAIN": "a b\tc"}, tries=1)
    bench.run(task, bench.datum(bench.input("dashed-name", "/f", {"/f": b""})))
    (said,) = bench.said()
    assert said.endswith("/dashed-name/f 00 a b\tc")


def test_python_is_the_servers_own(at_home: Bench) -> None:
    assert at_home.one(Task(("python3", "-c", "import localpachd"), tries=1)).state == "PROCESSED"


def test_stdin_is_lines(bench: Bench) -> None:
    task = Task(("sh",), stdin=("echo one", "echo two"), tries=1)
    assert bench.one(task).state == "PROCESSED"
    assert bench.said() == ["one", "two"]
    unread = Task(("true",), stdin=tuple("x" * 1000 for _ in range(1000)), tries=1)
    assert bench.one(unread).state == "PROCESSED"


@pytest.mark.parametrize(
    ("script", "reason"),
    [("exit 3", "exit status 3"), ("kill -SEGV $$", "signal: segmentation fault"), ("kill -KILL $$", "signal: killed")],
)
def test_a_failure_says_how_the_process_ended(bench: Bench, script: str, reason: str) -> None:
    result = bench.one(bench.sh(f'echo partial > "$PFS/out/seen"; {script}'))
    assert (result.state, result.reason) == ("FAILED", reason)
    assert bench.output(result) == {"/seen": b"partial\n"}


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        (Task(()), "invalid pipeline transform, no command specified"),
        (Task(("no-such-program",)), 'exec: "no-such-program": executable file not found in $PATH'),
        (Task(("/no/such/program",)), "fork/exec /no/such/program: no such file or directory"),
        (Task(("/etc/passwd",)), "fork/exec /etc/passwd: permission denied"),
        (Task(("true",), working_dir="/no/such"), "working_dir: /no/such is not a directory"),
        (Task(("true",), user="nobody-of-this-name"), "user: nobody-of-this-name not found"),
        (Task(("true", "nul\0byte")), "embedded null byte"),
    ],
)
def test_a_command_that_cannot_be_started_fails_with_a_reason(bench: Bench, task: Task, reason: str) -> None:
    result = bench.one(task)
    assert result.state == "FAILED"
    assert reason in result.reason


def test_working_directory(bench: Bench) -> None:
    assert bench.one(bench.sh("pwd", working_dir="usr")).state == "PROCESSED"
    assert bench.one(bench.sh('[ "$(pwd)" = "$PFS" ]', working_dir="/pfs")).state == "PROCESSED"
    assert bench.one(bench.sh("touch litter")).state == "PROCESSED"  # in a directory that is removed with the set
    assert bench.said() == ["/usr"]


def test_every_attempt_starts_clean(bench: Bench) -> None:
    count = f"{bench.shared}/count"
    task = bench.sh(
        f'ls "$PFS/out"; echo x >> {count}; rm -f "$in"; touch "$PFS/out/attempt-$(wc -l < {count})";'
        f" [ $(wc -l < {count}) = 3 ]",
        tries=3,
    )
    result = bench.one(task, bench.input("in", "/f", {"/f": b"1"}))
    assert result.state == "PROCESSED"
    assert [*bench.output(result)] == ["/attempt-3"]
    assert bench.said() == []
    assert len([line for line in bench.said(user=False) if line.startswith("errored running user code")]) == 2


def test_err_cmd_recovers_a_failed_datum(bench: Bench) -> None:
    err = ("sh", "-c", 'test -f "${LOCALPACHD_PFS:-/pfs}/out/half" && cat')
    task = bench.sh('touch "$PFS/out/half"; exit 1', tries=2, err_cmd=err, err_stdin=("sorry",))
    result = bench.one(task)
    assert result.state == "RECOVERED"
    assert [*bench.output(result)] == ["/half"]
    assert bench.said() == ["sorry", "sorry"]  # after each attempt


def test_a_failing_err_cmd_does_not_recover(bench: Bench) -> None:
    result = bench.one(bench.sh("exit 4", err_cmd=("false",)))
    assert (result.state, result.reason) == ("FAILED", "exit status 4")


def test_a_later_success_counts(bench: Bench) -> None:
    flag = f"{bench.shared}/flag"
    task = bench.sh(
        f'echo done > "$PFS/out/o"; [ -e {flag} ] || {{ touch {flag}; exit 1; }}', tries=2, err_cmd=("true",)
    )
    result = bench.one(task)
    assert (result.state, result.reason) == ("PROCESSED", "")


def test_a_datum_that_takes_too_long_fails(bench: Bench) -> None:
    result = bench.one(bench.sh("sleep 50", datum_timeout=0.2, err_cmd=("true",)))
    assert result.state == "FAILED"  # err_cmd runs under the deadline that has passed
    assert "datum_timeout" in result.reason


def test_the_rest_of_a_set_is_processed_after_a_failure(bench: Bench) -> None:
    task = bench.sh('[ "$N" != 1 ]')
    results = bench.run(task, *(bench.datum(N=str(number)) for number in range(3)))
    assert [result.state for result in results] == ["PROCESSED", "FAILED", "PROCESSED"]


def test_cancelling_ends_everything_at_once(bench: Bench) -> None:
    token = CancelToken()

    def log(line: LogLine) -> None:
        if line.message == "started":
            token.cancel()

    results: list[DatumResult] = []
    task = bench.sh("(setsid sleep 50 &) ; sleep 50 & echo started; wait")
    bench.runner.run_set(task, [bench.datum(), bench.datum()], results.append, log, token)
    assert results == []


def test_a_cancelled_set_does_not_start(bench: Bench) -> None:
    token = CancelToken()
    token.cancel()
    assert bench.run(bench.sh("true"), bench.datum(), cancel=token) == []


def test_restarting_ends_one_attempt(bench: Bench) -> None:
    token = CancelToken()
    flag = f"{bench.shared}/flag"
    datum = bench.datum()
    restarted = threading.Event()

    def log(line: LogLine) -> None:
        bench.lines.append(line)
        if line.message == "hanging":
            assert not token.restart({"another datum"})
            assert token.restart({datum.id})
            restarted.set()

    task = bench.sh(f"[ -e {flag} ] || {{ touch {flag}; echo hanging; sleep 50; }}", tries=2)
    bench.runner.run_set(task, [datum], bench.results.append, log, token)
    assert restarted.is_set()
    assert [result.state for result in bench.results] == ["PROCESSED"]
    assert not token.restart({datum.id})


def test_an_exception_of_the_log_is_raised(bench: Bench) -> None:
    def broken(line: LogLine) -> None:
        if line.user:
            raise RuntimeError("the log is full")

    with pytest.raises(RuntimeError, match="the log is full"):
        bench.runner.run_set(
            bench.sh("yes | head -c 1000000"), [bench.datum()], bench.results.append, broken, CancelToken()
        )


def test_several_sets_run_side_by_side(at_home: Bench) -> None:
    meet = at_home.root / "meet"
    meet.mkdir()
    # Each waits for the other: they can only end together.
    script = f'touch {meet}/$N; until [ -e {meet}/$((1 - N)) ]; do :; done; ls "$PFS/in" > "$PFS/out/$N"'

    def one(number: int) -> None:
        given = at_home.input("in", f"/{number}", {f"/{number}": b""})
        at_home.run(at_home.sh(script, datum_timeout=50.0), at_home.datum(given, N=str(number)))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(path for result in at_home.results for path in at_home.output(result)) == ["/0", "/1"]
    for result in at_home.results:
        assert [f"/{data.decode().strip()}" for data in at_home.output(result).values()] == [result.output[0].path]


def test_the_log_says_once_that_pfs_is_missing(at_home: Bench) -> None:
    at_home.run(at_home.sh("true"), at_home.datum())
    at_home.run(at_home.sh("true"), at_home.datum())
    told = [line for line in at_home.said(user=False) if "LOCALPACHD_PFS" in line]
    assert len(told) == (0 if at_home.mounts else 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run commands as another user")
def test_no_other_user_can_read_the_files_of_a_worker_without_pfs() -> None:
    with tempfile.TemporaryDirectory() as around:
        Path(around).chmod(0o711)  # as the server leaves its root to the processes of others
        bench = Bench(Path(around), NONE)
        bench.one(bench.sh("stat -c '%a %U' $LOCALPACHD_PFS", user="nobody"))
        assert bench.said() == ["700 nobody"]
        bench.close()


def test_a_missing_input_is_a_reason(bench: Bench) -> None:
    result = bench.one(bench.sh("true"), bench.input("in", "/gone", {}))
    assert (result.state, result.reason) == (
        "FAILED", "cannot put the inputs in place: in:/gone is not in its commit",
    )  # fmt: skip


def test_a_lost_chunk_is_a_reason(bench: Bench) -> None:
    given = bench.input("in", "/f", {"/f": b"content"})
    bench.lose_all_chunks()
    result = bench.one(bench.sh("true"), given)
    assert result.state == "FAILED"
    assert "is not in the store" in result.reason


def test_a_name_too_long_for_the_disk_is_a_reason(bench: Bench) -> None:
    result = bench.one(bench.sh("true"), bench.input("in", "/", {"/" + "x" * 300: b""}))
    assert result.state == "FAILED"
    assert "File name too long" in result.reason


def test_leftovers_of_a_killed_server_go(at_home: Bench) -> None:
    left = at_home.scratch / "worker-old" / "pfs"
    left.mkdir(parents=True)
    (left / "f").touch()
    type(at_home)(at_home.root, at_home.confinement).runner.close()
    assert list(at_home.scratch.iterdir()) == []
