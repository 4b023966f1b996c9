"""The services as bare programs: their variables, their sentences, their end."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command import HEED_INTERRUPTS

_RUN = f"{HEED_INTERRUPTS}; import runpy; runpy.run_module('stages.%s', run_name='__main__', alter_sys=True)"


def started(tmp_path: Path, module: str = "serve", **variables: str) -> "subprocess.Popen[str]":
    """The program with these variables, and none of Pachyderm's that the tests have."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PACH", "PPS_"))}
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _RUN % module],
        env={**kept, "CACHE": str(tmp_path / "cache"), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_it_listens_without_a_server_and_ends_when_told(tmp_path: Path, number: signal.Signals, status: int) -> None:
    with started(
        tmp_path, PACHD_ADDRESS="grpc://127.0.0.1:1", LISTEN="127.0.0.1:0", index_COMMIT="5eed" * 8
    ) as process:
        assert process.stdout is not None
        assert (
            process.stdout.readline() == "serve: the index of commit 5eed5eed5eed is served as soon as it is finished\n"
        )
        assert process.stdout.readline().startswith("serve: http://127.0.0.1:")
        assert (
            process.stdout.readline()
            == "serve: the library's server at grpc://127.0.0.1:1 does not answer; trying again\n"
        )
        process.send_signal(number)
        assert process.communicate(timeout=60) == ("", "")
        assert process.returncode == status


def test_the_service_of_the_classifier_names_itself(tmp_path: Path) -> None:
    variables = {"PACHD_ADDRESS": "grpc://127.0.0.1:1", "LISTEN": "127.0.0.1:0", "select_COMMIT": "5eed" * 8}
    with started(tmp_path, "classify_serve", **variables) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(3)]
        assert lines[0] == "classify-serve: the model of commit 5eed5eed5eed is served as soon as it is finished\n"
        assert lines[1].startswith("classify-serve: http://127.0.0.1:")
        assert lines[2] == "classify-serve: the library's server at grpc://127.0.0.1:1 does not answer; trying again\n"
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=60) == ("", "")
        assert process.returncode == 0


def test_it_says_what_is_missing_or_wrong(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        there = f"127.0.0.1:{taken.getsockname()[1]}"
        for variables, reason in (
            ({}, "serve: there is no Pachyderm to follow"),
            ({"PACHD_ADDRESS": "nowhere://a", "LISTEN": "127.0.0.1:0"}, "is not a valid address of a Pachyderm server"),
            ({"PACHD_ADDRESS": "grpc://127.0.0.1:1", "LISTEN": there}, "is in use"),
            ({"PACHD_ADDRESS": "grpc://127.0.0.1:1", "LISTEN": "0.0.0.0:0"}, "needs a token"),
            ({"PACHD_ADDRESS": "grpc://127.0.0.1:1", "K": "none"}, "K"),
        ):
            with started(tmp_path, **variables) as process:
                said, complained = process.communicate(timeout=60)
            assert (process.returncode, said) == (1, "")
            assert reason in complained
            assert complained.count("\n") == 1
