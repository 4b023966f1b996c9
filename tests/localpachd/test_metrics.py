"""The metrics of a server, read over HTTP and parsed by Prometheus' own parser."""

from __future__ import annotations

import http.client
import random
import socket
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import grpc
import pytest
from prometheus_client.parser import text_string_to_metric_families
from python_pachyderm import Client
from python_pachyderm.proto.v2.pps import pps_pb2

from localpachd.metrics.metrics_endpoint import PAGE
from tests import servers
from tests.certificates import self_signed
from tests.conditions import until
from tests.servers import Localpachd, StartPachd

TOKEN, SCRAPE = "0123456789abcdef" * 4, "fedcba9876543210" * 4
ON = ("--metrics-port", "0")

Samples = Mapping[tuple[str, ...], float]


def address(server: Localpachd) -> str:
    """The URL of the metrics, which is in the second line of the server."""
    assert server.process.stdout is not None
    return server.process.stdout.readline().removeprefix("localpachd: metrics at ").strip()


def read(url: str, token: str = "", context: ssl.SSLContext | None = None) -> str:
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    with urllib.request.urlopen(request, timeout=60, context=context) as reply:
        assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return str(reply.read().decode())


def samples(url: str) -> Samples:
    """The value of each sample, by its name and the values of its labels in the order of their names."""
    return {
        (each.name, *(value for _, value in sorted(each.labels.items()))): each.value
        for family in text_string_to_metric_families(read(url))
        for each in family.samples
    }


def eventually(look: Callable[[], Samples], reached: Callable[[Samples], bool]) -> Samples:
    """The first samples of which a condition is true. The calls that are counted end after their replies."""
    return until(lambda: found if reached(found := look()) else {})


def refused(url: str, token: str = "") -> int:
    with pytest.raises(urllib.error.HTTPError) as info:
        read(url, token)
    info.value.close()
    return info.value.code


@pytest.fixture(scope="module")
def server(start_shared_pachd: StartPachd, tmp_path_factory: pytest.TempPathFactory) -> Localpachd:
    return start_shared_pachd(tmp_path_factory.mktemp("shown") / "root", *ON, "--gpus", "0")


@pytest.fixture(scope="module")
def url(server: Localpachd) -> str:
    """The address of the metrics of that server."""
    return address(server)


def test_calls_are_counted_by_method_and_code(server: Localpachd, url: str) -> None:
    client = server.client()
    created = ("localpachd_calls_total", "OK", "pfs_v2.API/CreateRepo")
    before = samples(url).get(created, 0)
    client.create_repo("counted")
    for _ in range(3):
        with pytest.raises(grpc.RpcError):
            client.inspect_repo("missing")
    assert "counted" in [each.repo.name for each in client.list_repo()]
    found = eventually(
        lambda: samples(url), lambda found: ("localpachd_calls_total", "OK", "pfs_v2.API/ListRepo") in found
    )
    assert found[created] == before + 1
    assert found["localpachd_calls_total", "NOT_FOUND", "pfs_v2.API/InspectRepo"] == 3
    assert found["localpachd_call_seconds_count", "pfs_v2.API/InspectRepo"] == 3
    assert found["localpachd_call_seconds_bucket", "+Inf", "pfs_v2.API/InspectRepo"] == 3
    assert 0 < found["localpachd_call_seconds_sum", "pfs_v2.API/CreateRepo"] < 60


def test_waiting_calls_are_under_way_until_they_end(server: Localpachd, url: str) -> None:
    client = server.client()
    client.create_repo("waited")
    method = "pfs_v2.API/SubscribeCommit"
    waiting = client.subscribe_commit("waited", "master")
    waits = ("localpachd_calls_waiting", method)
    found = eventually(lambda: samples(url), lambda found: found.get(waits) == 1)
    assert found["localpachd_calls_under_way", method] == 1
    waiting.cancel()
    ended = ("localpachd_calls_total", "CANCELLED", method)
    found = eventually(lambda: samples(url), lambda found: found.get(ended) == 1)
    assert found["localpachd_calls_under_way", method] == 0
    with client.commit("waited", "master") as commit:
        pass
    assert next(client.inspect_commit(commit)).commit.id == commit.id
    inspected = ("localpachd_calls_total", "OK", "pfs_v2.API/InspectCommit")
    eventually(lambda: samples(url), lambda found: found.get(inspected) == 1)


def test_names_that_clients_invent_are_one_method(server: Localpachd, url: str) -> None:
    with grpc.insecure_channel(server.address.removeprefix("grpc://")) as channel:
        for number in range(5):
            with pytest.raises(grpc.RpcError):
                invented: grpc.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
                    f"/pfs_v2.API/Invented{number}"
                )
                invented(b"")
    found = eventually(
        lambda: samples(url), lambda found: found.get(("localpachd_calls_total", "UNIMPLEMENTED", "unknown")) == 5
    )
    assert not [key for key in found if any("Invented" in part for part in key)]


def test_the_state_is_that_of_the_server(server: Localpachd, url: str) -> None:
    client = server.client()
    client.create_repo("in")
    noise = random.Random(1).randbytes(300_000)
    before = samples(url)
    with client.commit("in", "master") as commit:
        for name in ("good", "bad"):
            client.put_file_bytes(commit, f"/{name}", noise)
        assert samples(url)["localpachd_commits_open",] == 1
    client.create_pipeline(
        "copy",
        transform=pps_pb2.Transform(cmd=["sh"], stdin=["test -e /pfs/in/good"], err_cmd=["false"]),
        input=pps_pb2.Input(pfs=pps_pb2.PFSInput(repo="in", glob="/*")),
        datum_tries=1,
    )
    (job,) = client.list_job("copy")
    client.inspect_job(job.job.id, "copy", wait=True)
    found = samples(url)
    assert found["localpachd_jobs", "failure"] == 1
    assert found["localpachd_datums", "processed"] == found["localpachd_datums", "failed"] == 1
    assert found["localpachd_gpus",] == found["localpachd_gpus_leased",] == 0
    stored = found["localpachd_disk_bytes", "chunks"] - before["localpachd_disk_bytes", "chunks"]
    assert 300_000 < stored < 500_000  # the equal files are one
    assert 0 < found["localpachd_disk_free_bytes",] < found["localpachd_disk_total_bytes",]
    assert found["localpachd_process_open_fds",] > 3
    assert found["localpachd_process_resident_memory_bytes",] > 1e7


def test_only_the_token_opens_them(start_pachd: StartPachd, tmp_path: Path) -> None:
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "scrape").write_text(SCRAPE)
    one = ("--token-file", str(tmp_path / "token"))
    url = address(start_pachd(tmp_path / "first", *ON, *one))
    assert refused(url) == refused(url, "wrong") == 401
    assert "localpachd_jobs" in read(url, TOKEN)
    server = start_pachd(tmp_path / "second", *ON, *one, "--metrics-token-file", str(tmp_path / "scrape"))
    url = address(server)
    assert refused(url, TOKEN) == 401
    assert "localpachd_jobs" in read(url, SCRAPE)
    with pytest.raises(grpc.RpcError) as info:
        list(Client(port=int(server.address.rpartition(":")[2]), auth_token=SCRAPE).list_repo())
    assert info.value.code() is grpc.StatusCode.UNAUTHENTICATED


def test_other_addresses_need_tls_and_a_token(tmp_path: Path) -> None:
    tried = servers.run("--port", 0, "--root", tmp_path / "root", *ON, "--metrics-host", "0.0.0.0")
    assert tried.returncode == 1
    assert "0.0.0.0 is not a loopback address" in tried.stderr
    assert not (tmp_path / "root").exists()


def test_they_speak_tls_with_the_servers_certificate(start_pachd: StartPachd, tmp_path: Path) -> None:
    certificate, key = self_signed(tmp_path)
    url = address(start_pachd(tmp_path / "root", *ON, "--tls-cert", str(certificate), "--tls-key", str(key)))
    assert url.startswith("https://127.0.0.1:")
    assert "localpachd_jobs" in read(url, context=ssl.create_default_context(cafile=str(certificate)))


def test_a_name_of_an_attacker_that_leads_here_is_refused(url: str) -> None:
    place = url.removeprefix("http://").removesuffix(PAGE)
    connection = http.client.HTTPConnection(place, timeout=60)
    connection.request("GET", PAGE, headers={"Host": "attacker.example"})
    assert connection.getresponse().status == 403
    connection.close()
    assert refused(url.removesuffix(PAGE) + "/other") == 404


def test_clients_that_say_nothing_do_not_hold_up_others(start_pachd: StartPachd, tmp_path: Path) -> None:
    server = start_pachd(tmp_path / "root", *ON)
    url = address(server)
    place = url.removeprefix("http://").removesuffix(PAGE)
    silent = [http.client.HTTPConnection(place, timeout=60) for _ in range(5)]
    for each in silent:
        each.connect()
    readers = [threading.Thread(target=read, args=(url,)) for _ in range(2)]
    for each_reader in readers:
        each_reader.start()
    for each_reader in readers:
        each_reader.join()
    server.process.terminate()
    assert server.process.wait(timeout=30) == 0
    for each in silent:
        each.close()


def test_a_taken_port_is_explained(server: Localpachd, tmp_path: Path) -> None:
    port = server.address.rpartition(":")[2]
    tried = servers.run("--port", 0, "--root", tmp_path / "second", "--metrics-port", port)
    assert tried.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in tried.stderr
    assert "choose another --metrics-port" in tried.stderr


def test_without_the_option_nothing_is_shown(start_pachd: StartPachd, tmp_path: Path) -> None:
    server = start_pachd(tmp_path / "root")
    server.client().create_repo("in")
    server.stop()
    assert not (tmp_path / "root.log").read_text()


def test_silent_connections_give_way(url: str) -> None:
    place = urlsplit(url)
    with ExitStack() as held:
        for _ in range(100):
            held.enter_context(socket.create_connection((place.hostname or "", place.port or 0), timeout=60))
        assert samples(url)


def test_a_second_host_is_refused(url: str) -> None:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    connection.putrequest("GET", PAGE)
    connection.putheader("Host", "attacker.example")
    connection.endheaders()
    assert connection.getresponse().status == 400
    connection.close()
