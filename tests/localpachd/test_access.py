"""Access to a server: the addresses that it listens on, its token, TLS, and the permissions of its files."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import socket
import ssl
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import pytest
from python_pachyderm import Client
from python_pachyderm.proto.v2.pps import pps_pb2

from localpachd.root_access import restrict_to_owner
from tests import servers
from tests.certificates import self_signed
from tests.servers import Localpachd, StartPachd

TOKEN = "0123456789abcdef" * 4
NO_TOKEN = (grpc.StatusCode.UNAUTHENTICATED, "no authentication token (try logging in)")
WRONG_TOKEN = (
    grpc.StatusCode.UNAUTHENTICATED,
    "provided auth token is corrupted or has expired (try logging in again)",
)


def refused(call: Callable[..., object], *arguments: object) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as info:
        call(*arguments)
    return info.value.code(), str(info.value.details())


def client(server: Localpachd, token: str | None = None, certificate: bytes | None = None) -> Client:
    parts = urlsplit(server.address)
    return Client(
        host="127.0.0.1", port=parts.port, auth_token=token, tls=certificate is not None, root_certs=certificate
    )


def listed(who: Client) -> list[str]:
    """The names of all repos."""
    return [each.repo.name for each in who.list_repo()]


@pytest.fixture(scope="module")
def token_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("token") / "token"
    file.write_text(TOKEN + "\n")
    return file


@pytest.fixture(scope="module")
def guarded(start_shared_pachd: StartPachd, token_file: Path) -> Localpachd:
    """A server that asks for the token."""
    return start_shared_pachd(token_file.with_name("root"), "--token-file", str(token_file))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1, and its key."""
    return self_signed(tmp_path_factory.mktemp("tls"))


def listening(process: int) -> set[str]:
    """The addresses on which a process listens for connections."""
    sockets = set[str]()
    for each in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            sockets.update(re.findall(r"^socket:\[(\d+)\]$", str(each.readlink())))
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            _, local, _, state, *rest = line.split()
            if state == "0A" and rest[5] in sockets:
                found.add(address(local.partition(":")[0]))
    return found


def address(text: str) -> str:
    """An address as people write it, from the kernel's notation: words in the order of this machine's bytes."""
    words = [bytes.fromhex(text[at : at + 8]) for at in range(0, len(text), 8)]
    packed = b"".join(word[::-1] if sys.byteorder == "little" else word for word in words)
    found = ipaddress.ip_address(packed)
    return str(getattr(found, "ipv4_mapped", None) or found)


def spout(client: Client, name: str) -> None:
    client.create_pipeline(
        name,
        transform=pps_pb2.Transform(cmd=["sh"], stdin=["echo begun", "exec sleep 50"]),
        spout=pps_pb2.Spout(service=pps_pb2.Service(internal_port=free_port(), external_port=free_port())),
    )
    assert any(line.message.strip() == "begun" for line in client.get_pipeline_logs(name, follow=True))


def free_port() -> int:
    with socket.socket() as any_socket:
        any_socket.bind(("127.0.0.1", 0))
        return int(any_socket.getsockname()[1])


def test_everything_listens_on_the_loopback_alone(start_pachd: StartPachd, tmp_path: Path) -> None:
    """The API, the port of NextDatum, a spout's sidecar, and the relay of its service."""
    server = start_pachd(tmp_path / "root")
    spout(server.client(), "spout")
    assert listening(server.process.pid) == {"127.0.0.1"}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1"])
def test_other_addresses_need_tls_and_a_token(
    tmp_path: Path, token_file: Path, certificate: tuple[Path, Path], host: str
) -> None:
    tls = ("--tls-cert", certificate[0], "--tls-key", certificate[1])
    for options in ((), tls, ("--token-file", token_file)):
        tried = servers.run("--port", 0, "--root", tmp_path / "root", "--host", host, *options)
        assert tried.returncode == 1
        assert f"{host} is not a loopback address" in tried.stderr
        assert "--tls-cert, --tls-key and --token-file, or type --insecure" in tried.stderr
    assert not (tmp_path / "root").exists()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.2"])
def test_addresses_of_the_loopback_need_nothing(start_pachd: StartPachd, tmp_path: Path, host: str) -> None:
    server = start_pachd(tmp_path / "root", "--host", host)
    assert list(server.client().list_repo()) == []
    assert listening(server.process.pid) <= {"127.0.0.1", "127.0.0.2", "::1"}


def test_insecure_must_be_typed(start_pachd: StartPachd, tmp_path: Path) -> None:
    server = start_pachd(tmp_path / "root", "--host", "0.0.0.0", "--insecure")
    assert listening(server.process.pid) & {"0.0.0.0", "::"}
    assert list(client(server).list_repo()) == []


def test_a_token_is_asked_for_in_pachyderms_words(guarded: Localpachd) -> None:
    stranger, guesser = client(guarded), client(guarded, TOKEN[:-1] + "0")
    for who, answer in ((stranger, NO_TOKEN), (guesser, WRONG_TOKEN)):
        assert refused(listed, who) == answer
        assert refused(who.inspect_repo, "in") == answer
        assert refused(who.list_transaction) == answer
    assert refused(stranger.create_repo, "in") == NO_TOKEN
    assert refused(lambda: stranger.put_file_bytes(("in", "master"), "/a", b"x")) == NO_TOKEN
    # pachctl asks for these before it logs in.
    assert stranger.get_remote_version().major == 2
    assert stranger.health_check().status == 1
    assert stranger.inspect_cluster().id
    client(guarded, TOKEN).create_repo("in")
    assert "in" in listed(client(guarded, TOKEN))


def test_calls_that_the_server_does_not_know_need_the_token_too(guarded: Localpachd) -> None:
    with grpc.insecure_channel(urlsplit(guarded.address).netloc) as channel:
        for method in ("/auth_v2.API/WhoAmI", "/debug_v2.Debug/Dump", "/localpachd.Debug/RunDatum", "/no.API/Call"):
            assert refused(channel.unary_unary(method), b"") == NO_TOKEN
            assert refused(lambda call: list(call(b"")), channel.unary_stream(method)) == NO_TOKEN


@pytest.mark.parametrize("text", ["", "short", "two words of sufficient length", "a token\u00e9 outside of ascii"])
def test_tokens_that_cannot_be(tmp_path: Path, text: str) -> None:
    (tmp_path / "token").write_text(text)
    tried = servers.run("--port", 0, "--root", tmp_path / "root", "--token-file", tmp_path / "token")
    assert tried.returncode == 1
    assert str(tmp_path / "token") in tried.stderr
    assert text == "" or text not in tried.stderr
    assert "Traceback" not in tried.stderr


def test_tls(start_pachd: StartPachd, tmp_path: Path, token_file: Path, certificate: tuple[Path, Path]) -> None:
    """Clients come in with TLS and the token; workers, on the loopback, with a token of their own."""
    cert, key = certificate
    options = ("--host", "0.0.0.0", "--tls-cert", str(cert), "--tls-key", str(key), "--token-file", str(token_file))
    server = start_pachd(tmp_path / "root", *options)
    assert server.address.startswith("grpcs://0.0.0.0:")
    port = int(urlsplit(server.address).port or 0)
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        assert refused(channel.unary_unary("/versionpb_v2.API/GetVersion"), b"")[0] is grpc.StatusCode.UNAVAILABLE
    assert refused(lambda: list(client(server, None, cert.read_bytes()).list_repo())) == NO_TOKEN
    mine = client(server, TOKEN, cert.read_bytes())
    assert list(mine.list_repo()) == []
    context = ssl.create_default_context(cafile=str(cert))
    with (
        socket.create_connection(("127.0.0.1", port)) as raw,
        context.wrap_socket(raw, server_hostname="127.0.0.1") as wrapped,
    ):
        assert wrapped.version() in ("TLSv1.2", "TLSv1.3")
    check_workers(mine)


@pytest.mark.parametrize("fault", ["no key", "no certificate", "other key", "no file", "not PEM"])
def test_certificates_that_cannot_be_used(
    tmp_path: Path, token_file: Path, certificate: tuple[Path, Path], fault: str
) -> None:
    other = tmp_path / "other.pem"
    if fault == "other key":
        subprocess.run(["openssl", "genrsa", "-out", other, "2048"], check=True, capture_output=True)
    if fault == "not PEM":
        other.write_text("a key")
    cert, key = certificate
    options: list[object] = {"no key": ["--tls-cert", cert], "no certificate": ["--tls-key", key]}.get(
        fault, ["--tls-cert", cert, "--tls-key", other]
    )
    tried = servers.run("--port", 0, "--root", tmp_path / "root", "--token-file", token_file, *options)
    assert tried.returncode == 1
    assert "--tls-cert and --tls-key belong together" in tried.stderr or str(other) in tried.stderr
    assert "Traceback" not in tried.stderr


ASKS = """
import sys, python_pachyderm
client = python_pachyderm.Client.new_in_cluster()
print("repos", sorted(each.repo.name for each in client.list_repo()))
"""


def check_workers(mine: Client) -> None:
    """User code of a pipeline, and of a spout by its configuration, is answered by its own server."""
    mine.create_repo("in")
    mine.create_pipeline(
        "asks",
        transform=pps_pb2.Transform(
            cmd=["python3", "-c", ASKS + "open('/pfs/out/env', 'w').write(open('/pfs/.env').read())"]
        ),
        input=pps_pb2.Input(pfs=pps_pb2.PFSInput(repo="in", glob="/")),
    )
    mine.put_file_bytes(("in", "master"), "/a", b"x")
    mine.wait_commit(next(iter(mine.list_commit("in"))).commit.id)
    said = [line.message.strip() for line in mine.get_pipeline_logs("asks")]
    assert "repos ['asks', 'in']" in said, said
    # The token of workers is kept nowhere.
    kept = mine.get_file(("asks", "master"), "/env").read().decode()
    assert "PPS_WORKER_GRPC_PORT" in kept
    assert "TOKEN" not in kept


def test_a_spouts_sidecar_asks_for_the_token(guarded: Localpachd) -> None:
    mine = client(guarded, TOKEN)
    mine.create_pipeline(
        "spout",
        transform=pps_pb2.Transform(
            cmd=["python3", "-c", ASKS + "import os; print('port', os.environ['PEER_PORT']); "
                 "c = python_pachyderm.Client(); c.put_file_bytes(('spout', 'master'), '/a', b'x'); "
                 "print('put'); import time; time.sleep(50)"]
        ),
        spout=pps_pb2.Spout(),
    )  # fmt: skip
    port = 0
    for line in mine.get_pipeline_logs("spout", follow=True):
        if line.message.startswith("port"):
            port = int(line.message.split()[1])
        if line.message.strip() == "put":
            break
    assert [each.file.path for each in mine.list_file(("spout", "master"), "/")] == ["/a"]
    assert refused(lambda: list(Client(host="127.0.0.1", port=port).list_repo())) == NO_TOKEN


def others_may(root: Path) -> list[str]:
    """The files and directories of a root, itself included, that others than the owner may use in some way.
    Directories below the root are in nobody's reach."""
    found = [str(root)] if stat.S_IMODE(root.stat().st_mode) & 0o077 else []
    for directory, _, names in os.walk(root):
        for name in names:
            path = Path(directory, name)
            if stat.S_IMODE(path.stat().st_mode) & 0o077:
                found.append(str(path))
    return found


def fill(client: Client) -> None:
    client.create_repo("in")
    client.put_file_bytes(("in", "master"), "/small", b"x" * 1000)
    client.put_file_bytes(("in", "master"), "/large", os.urandom(1 << 20))


@pytest.fixture
def usual_umask() -> Iterator[None]:
    mask = os.umask(0o022)
    yield
    os.umask(mask)


@pytest.mark.usefixtures("usual_umask")
def test_the_root_is_the_owners_alone(start_pachd: StartPachd, tmp_path: Path) -> None:
    server = start_pachd(tmp_path / "root")
    fill(server.client())
    assert others_may(tmp_path / "root") == []


@pytest.mark.usefixtures("usual_umask")
def test_a_start_closes_the_root_of_an_earlier_version(start_pachd: StartPachd, tmp_path: Path) -> None:
    first = start_pachd(tmp_path / "root")
    fill(first.client())
    first.stop()
    for directory, _, names in os.walk(tmp_path / "root"):
        Path(directory).chmod(0o755)
        for name in names:
            Path(directory, name).chmod(0o644)
    second = start_pachd(tmp_path / "root")
    assert others_may(tmp_path / "root") == []
    assert second.client().get_file(("in", "master"), "/small").read() == b"x" * 1000


def test_links_in_a_root_lead_no_permissions_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "root" / "chunks").mkdir(parents=True)
    (tmp_path / "elsewhere").touch()
    (tmp_path / "elsewhere").chmod(0o644)
    (tmp_path / "root" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "root" / "chunks" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "root").chmod(0o755)
    restrict_to_owner(tmp_path / "root")
    assert stat.S_IMODE((tmp_path / "elsewhere").stat().st_mode) == 0o644


def test_a_root_whose_permissions_cannot_be_set_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    restrict_to_owner(tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "chmod", _refused)
        restrict_to_owner(tmp_path)
    assert f"others may be able to read {tmp_path}" in caplog.text


def _refused(path: object, *_: object, **__: object) -> None:
    raise PermissionError(1, "Operation not permitted", str(path))
