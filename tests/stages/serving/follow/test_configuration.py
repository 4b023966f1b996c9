"""The configuration of the service: from variables and files, and never one that lets strangers read."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stages.datum.contract import StageError
from stages.serving.follow.configuration import ServiceConfiguration, check, from_environment, listening, read_token
from stages.serving.follow.pachyderm_client import PachydermAddress
from tests.certificates import self_signed

TOKEN = "0123456789abcdef"
PACHD = {"PACHD_ADDRESS": "grpc://pachd:30650"}
WORKER = {
    "PPS_PIPELINE_NAME": "serve",
    "PPS_PROJECT_NAME": "prints",
    "PACHD_PEER_SERVICE_HOST": "10.0.0.7",
    "PACHD_PEER_SERVICE_PORT": "30653",
}


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "token").write_text(TOKEN + "\n")
    return tmp_path / "secrets"


def with_tls(directory: Path) -> Path:
    """The directory with a certificate and its key."""
    self_signed(directory)
    return directory


def test_a_program_anywhere_listens_on_the_loopback_without_a_token(tmp_path: Path) -> None:
    found = from_environment({**PACHD, "K": "7"}, tmp_path, tmp_path / "none")
    assert (found.host, found.port, found.token, found.is_local) == ("127.0.0.1", 30680, "", True)
    assert (found.server, found.settings.k) == (PachydermAddress("grpc://pachd:30650"), 7)
    assert found.url == "http://127.0.0.1:30680"


def test_a_worker_on_a_cluster_listens_everywhere_with_tls_and_a_token(secrets: Path, tmp_path: Path) -> None:
    found = from_environment(WORKER, with_tls(secrets), tmp_path / "none")
    assert (found.host, found.is_local, found.token) == ("0.0.0.0", False, TOKEN)
    assert (found.certificate, found.key) == (secrets / "tls.crt", secrets / "tls.key")
    assert found.server == PachydermAddress("grpc://10.0.0.7:30653", "prints")
    assert found.url == "https://127.0.0.1:30680"


def test_a_worker_on_a_cluster_may_be_behind_a_proxy(secrets: Path, tmp_path: Path) -> None:
    found = from_environment({**WORKER, "PROXY": "pictures.example.org"}, secrets, tmp_path / "none")
    assert (found.proxy, found.certificate) == ("pictures.example.org", None)


def test_a_worker_of_localpachd_listens_on_the_loopback(secrets: Path, tmp_path: Path) -> None:
    found = from_environment({**WORKER, "PACHD_PEER_SERVICE_HOST": "127.0.0.1"}, secrets, tmp_path / "none")
    assert (found.host, found.token, found.server.url) == ("127.0.0.1", TOKEN, "grpc://127.0.0.1:30653")


def test_the_token_for_pachyderm_is_the_secrets_or_the_workers(secrets: Path, tmp_path: Path) -> None:
    pachctl = tmp_path / "config.json"
    pachctl.write_text(json.dumps({"v2": {"active_context": "it", "contexts": {"it": {"session_token": "worker's"}}}}))
    assert from_environment(PACHD, secrets, pachctl).server.token == "worker's"
    (secrets / "pachd-token").write_text("ours\n")
    assert from_environment(PACHD, secrets, pachctl).server.token == "ours"
    pachctl.write_text("{")
    (secrets / "pachd-token").unlink()
    assert from_environment(PACHD, secrets, pachctl).server.token is None


@pytest.mark.parametrize(
    ("environment", "missing", "said"),
    [
        (WORKER, (), r"others can read the requests: name --tls-cert"),
        ({**WORKER, "PROXY": "p.example.org"}, ("token",), r"needs a token: write a long random one into a file"),
        ({**PACHD, "LISTEN": "192.168.0.1:80"}, ("token",), r"at 192.168.0.1 others .* needs a token"),
        ({**PACHD, "PROXY": "p.example.org"}, ("token",), r"behind p.example.org others .* needs a token"),
        ({**WORKER, "PROXY": "https://p"}, (), r"'https://p' is not the name of a proxy"),
        ({**PACHD, "LISTEN": "80"}, (), r"'80' is not an address to listen on: write HOST:PORT"),
        ({**PACHD, "K": "many"}, (), r"K='many': must be a whole number"),
        ({}, (), r"there is no Pachyderm to follow"),
        ({**PACHD, "PACH_CA_CERTS": "/gone.pem"}, (), r"cannot read /gone.pem"),
    ],
)
def test_what_is_wrong_is_said(
    secrets: Path, tmp_path: Path, environment: dict[str, str], missing: tuple[str, ...], said: str
) -> None:
    for name in missing:
        (secrets / name).unlink()
    with pytest.raises(StageError, match=said):
        from_environment(environment, secrets, tmp_path / "none")


@pytest.mark.parametrize("text", ["", "short", "0123456789 abcdef", "0123456789\nabcdef", "ü" * 20])
def test_a_token_that_can_be_guessed_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "token").write_text(text)
    with pytest.raises(StageError, match="does not hold a token"):
        read_token(tmp_path / "token")


def test_a_certificate_and_its_key_belong_together(secrets: Path, tmp_path: Path) -> None:
    with_tls(secrets)
    (tmp_path / "other").mkdir()
    other = with_tls(tmp_path / "other")
    good = ServiceConfiguration(
        PachydermAddress("grpc://pachd:1"), certificate=secrets / "tls.crt", key=secrets / "tls.key"
    )
    assert check(good) == good
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"key": other / "tls.key"}, "are not a certificate and its key"),
        ({"key": tmp_path / "none"}, "No such file"),
        ({"key": None}, "needs both a certificate and its key"),
        ({"certificate": None}, "needs both a certificate and its key"),
    )
    for change, said in wrong:
        with pytest.raises(StageError, match=said):
            check(replace(good, **change))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("0.0.0.0:80", ("0.0.0.0", 80)),
        ("localhost:0", ("localhost", 0)),
        ("[::1]:30680", ("::1", 30680)),
        (":30680", ("0.0.0.0", 30680)),
    ],
)
def test_addresses_to_listen_on(text: str, found: tuple[str, int]) -> None:
    assert listening(text) == found


@pytest.mark.parametrize("text", ["", "host", "host:", "host:65536", "host:x", "::1:80", "a b:80", "[::1]"])
def test_what_is_not_an_address_to_listen_on(text: str) -> None:
    with pytest.raises(StageError, match="is not an address to listen on"):
        listening(text)


def test_no_secret_is_shown() -> None:
    shown = repr(ServiceConfiguration(PachydermAddress("grpc://pachd:1", token="pachyderm-secret"), token=TOKEN))
    assert TOKEN not in shown
    assert "pachyderm-secret" not in shown
