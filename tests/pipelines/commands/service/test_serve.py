"""`lookalike serve` as a process: how it starts, what it refuses, and how it ends."""

import json
import os
import pty
import re
import signal
import socket
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pipelines.client.server.connection import Connection
from pipelines.client.services import service_discovery
from tests.certificates import self_signed
from tests.command import Command
from tests.pipelines.commands.service.service_processes import asked, serving

pytestmark = pytest.mark.late_alone

SERVE = ("serve",)
TOKEN = "0123456789abcdef"


def ended(process: "subprocess.Popen[str]", number: signal.Signals) -> tuple[int, str]:
    """The exit status after a signal, and what was written to stderr."""
    process.send_signal(number)
    said, complained = process.communicate(timeout=60)
    assert "Traceback" not in said + complained
    return process.returncode, complained


def test_it_serves_until_ctrl_c(as_user: Connection, command: Command) -> None:
    with serving(command, SERVE) as (process, url):
        assert asked(url, "/health") == (200, '{"state":"alive"}')
        status, body = asked(url, "/ready")
        assert status == 503
        assert json.loads(body)["state"] in ("loading", "failed")
        assert "<title>" in asked(url, "/")[1]
        found = service_discovery.running(as_user)
        assert found is not None
        assert found.url == url
        assert process.stdout is not None
        assert process.stdout.readline() == (
            f"project {as_user.project} has no pipeline index: create the pipelines with `lookalike deploy`\n"
        )
        assert ended(process, signal.SIGINT) == (130, "lookalike: the service has ended\n")
    assert service_discovery.running(as_user) is None


def test_a_token_is_asked_for_and_idle_clients_do_not_hold_up_its_end(
    as_user: Connection, command: Command, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    with serving(command, SERVE, "--token-file", tmp_path / "token") as (process, url):
        assert asked(url, "/status")[0] == 401
        assert asked(url, "/status", {"Authorization": f"Bearer {TOKEN}"})[0] == 200
        found = service_discovery.running(as_user)
        assert found is not None
        assert found.token_file == tmp_path / "token"
        address = (str(urlsplit(url).hostname), urlsplit(url).port or 0)
        with socket.create_connection(address), socket.create_connection(address) as half:
            half.sendall(b"POST /search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\nabc")
            assert asked(url, "/health")[0] == 200
            status, complained = ended(process, signal.SIGTERM)
            assert status == 0 and TOKEN not in complained
    assert list((service_discovery.state_directory() / "services").glob("*")) == []


def test_with_edit_it_makes_a_token_and_prints_the_address_that_holds_it(as_user: Connection, command: Command) -> None:
    process = command.start("serve", "--port", "0", "--edit", interruptible=True)
    try:
        assert process.stdout is not None
        said = re.fullmatch(r"lookalike serve: (\S+)/#token=(\S{32})\n", process.stdout.readline())
        assert said is not None
        url, token = said.groups()
        assert asked(url, "/status")[0] == 401
        assert asked(url, "/status", {"Authorization": f"Bearer {token}"})[0] == 200
        found = service_discovery.running(as_user)
        assert found is not None and found.token_file is not None
        assert found.token_file.stat().st_mode & 0o077 == 0
        assert ended(process, signal.SIGTERM)[0] == 0
        assert not found.token_file.exists()
    finally:
        process.kill()
        process.wait()


def test_others_ask_with_tls_and_a_token(as_user: Connection, command: Command) -> None:
    (command.directory / "token").write_text(TOKEN)
    self_signed(command.directory)
    options = ["--token-file", "token", "--tls-cert", "tls.crt", "--tls-key", "tls.key"]
    with serving(command, SERVE, "--listen", "0.0.0.0:0", *options) as (process, url):
        assert url.startswith("https://127.0.0.1:")
        assert asked(url, "/health", certificate=command.directory / "tls.crt")[0] == 200
        assert asked(url, "/status", certificate=command.directory / "tls.crt")[0] == 401
        found = service_discovery.running(as_user)
        assert found is not None
        assert (found.url, found.certificate) == (url, command.directory / "tls.crt")
        assert found.status["state"] in ("loading", "failed")
        assert ended(process, signal.SIGTERM) == (0, "")


def test_the_page_is_opened_where_there_is_a_screen(as_user: Connection, command: Command) -> None:
    opened = command.directory / "opened"
    os.mkfifo(opened)
    browser = command.directory / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    command.environment |= {"BROWSER": str(browser), "DISPLAY": ":99"}
    ours, theirs = pty.openpty()
    process = command.start("serve", "--port", "0", stdout=theirs)
    try:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+\n", opened.read_text())
    finally:
        process.kill()
        process.communicate()
        os.close(ours)
        os.close(theirs)


def test_a_port_in_use_is_refused_with_the_way_out(as_user: Connection, command: Command) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = command.fails("serve", "--port", port, "--no-browser")
    assert said.startswith(f"port {port} of 127.0.0.1 is in use")
    assert "--port" in said


REFUSED = (
    (["--listen", "0.0.0.0:0"], "needs a token"),
    (["--listen", "0.0.0.0:0", "--token-file", "token"], "name --tls-cert and --tls-key, or the proxy"),
    (["--behind-proxy", "pictures.example.org"], "needs a token"),
    (["--behind-proxy", "http://there", "--token-file", "token"], "is not the name of a proxy"),
    (["--listen", "everywhere"], "write HOST:PORT"),
    (["--token-file", "none"], "cannot read none"),
    (["--token-file", "short"], "short does not hold a token"),
    (["--tls-cert", "token"], "both a certificate and its key"),
    (["--tls-cert", "token", "--tls-key", "token"], "are not a certificate and its key"),
    (["--fetch-from", "intranet"], "is not a network such as"),
    (["--at", "2020-01-01"], "there are no commits yet"),
    (["--address", "grpc://127.0.0.1:1"], "grpc://127.0.0.1:1"),
)


def test_an_address_of_another_machine_is_refused(as_user: Connection, command: Command) -> None:
    (command.directory / "token").write_text(TOKEN)
    options = ["--listen", "no.such.host.invalid:0", "--token-file", "token", "--behind-proxy", "a.org"]
    assert "not an address" in command.fails("serve", "--no-browser", *options)


def test_what_it_refuses(as_user: Connection, command: Command) -> None:
    (command.directory / "token").write_text(TOKEN)
    (command.directory / "short").write_text("abc")
    for arguments, reason in REFUSED:
        assert reason in command.fails("serve", "--no-browser", *arguments)
    for wrong in (
        ["--deploy", "--off"],
        ["--listen", "127.0.0.1:0", "--port", "8000"],
        ["--port", "70000"],
        ["--edit", "--deploy"],
        ["--edit", "--at", "2026-11-01"],
    ):
        assert command.run("serve", *wrong).returncode == 2
