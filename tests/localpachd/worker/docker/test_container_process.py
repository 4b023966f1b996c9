"""Commands in a container: their children, and the messages of engines about them."""

from __future__ import annotations

import pytest

from localpachd.worker.docker import container_process
from tests.localpachd.worker.bench import Bench


@pytest.mark.docker
def test_nothing_that_a_command_starts_outlives_it(contained: Bench) -> None:
    task = contained.sh(
        "if [ $N = 0 ]; then touch /work/kept; (setsid sleep 50 &); sleep 50 & echo started; "
        "else ls /work/kept; "
        "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done | grep -c '^sleep'; true; fi"
    )
    results = contained.run(task, contained.datum(N="0"), contained.datum(N="1"))
    assert [result.state for result in results] == ["PROCESSED"] * 2
    assert contained.said() == ["started", "/work/kept", "0"]


@pytest.mark.docker
def test_a_child_that_keeps_writing_does_not_hold_up_the_datum(contained: Bench) -> None:
    result = contained.one(contained.sh("(while true; do echo still here; sleep 0.01; done) & true"))
    assert result.state == "PROCESSED"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "OCI runtime exec failed: exec failed: unable to start container process: "
            'exec: "no": executable file not found in $PATH: unknown\r\n',
            'exec: "no": executable file not found in $PATH',
        ),
        (
            'Error: runc: exec failed: unable to start container process: exec: "/no": stat /no: no such file or '
            "directory: OCI runtime attempted to invoke a command that was not found\nError: read unixpacket: reset\n",
            "fork/exec /no: no such file or directory",
        ),
        (
            "Error: crun: executable file `no` not found in $PATH: No such file or directory: OCI runtime attempted to "
            "invoke a command that was not found\n",
            'exec: "no": executable file not found in $PATH',
        ),
        ('exec failed: exec: "/f": permission denied: unknown', "fork/exec /f: permission denied"),
        ("something: new\n", "something: new"),
        ("", "the container engine could not start the command"),
    ],
)
def test_messages_of_engines_read_like_those_of_a_process(said: str, words: str) -> None:
    assert container_process._in_words(said) == words
