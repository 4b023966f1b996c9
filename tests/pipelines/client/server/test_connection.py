"""Connecting to a server, and the messages if there is none."""

import re
import socket
import threading
from pathlib import Path

import pytest

from pipelines.client.server.connection import ServerTarget, connect
from pipelines.client.server.parallel_reads import parallel_reads
from pipelines.errors import LookalikeError
from tests.conditions import until
from tests.pipelines.tcp_proxy import TcpProxy
from tests.servers import OwnPort, Pachd, StartPachd


def test_a_server_that_answers_is_connected_to(pachd: Pachd) -> None:
    for address in (pachd.address, pachd.address.removeprefix("grpc://")):
        found = connect(ServerTarget(address, "prints"))
        assert (found.address, found.project) == (pachd.address, "prints")
        assert found.client.get_remote_version().major == 2


def test_a_server_that_does_not_listen_is_reported() -> None:
    with socket.socket() as taken:  # bound but not listening: nobody else can take the port meanwhile
        taken.bind(("127.0.0.1", 0))
        address = f"grpc://127.0.0.1:{taken.getsockname()[1]}"
        absent, away = f"no Pachyderm answers at {address}: ", f"the library's server at {address} does not answer: "
        for target, words in (
            (ServerTarget(address), f"{absent}see with `kubectl get pods` whether pachd is running and ready, restart"),
            (ServerTarget(address, namespace="pach"), f"{absent}see with `kubectl get pods --namespace pach` whether"),
            (ServerTarget(address, local=True), f"{away}start it again with `lookalike up` in the directory of its"),
        ):
            with pytest.raises(LookalikeError, match=re.escape(words)):
                connect(target)


@pytest.mark.parametrize("address", ["ftp://here:1", "grpc://user@here:1", "grpc://here:1/path", "grpc://here:port"])
def test_invalid_addresses_are_reported(address: str) -> None:
    with pytest.raises(LookalikeError, match=re.escape(f"{address} is not a valid address of a Pachyderm server")):
        connect(ServerTarget(address))


def test_an_older_connection_that_has_failed_does_not_stop_a_new_one(pachd: Pachd) -> None:
    way = TcpProxy(pachd.address, limit=0)
    with pytest.raises(LookalikeError, match="no Pachyderm answers"):
        threading.Thread(target=way.serve, daemon=True).start()
        connect(ServerTarget(way.address))  # cut off; gRPC now waits before it tries this address again
    assert way.was_cut
    assert connect(ServerTarget(way.address)).client.get_remote_version().major == 2
    way.close()


def test_a_connection_that_is_lost_at_once_is_made_again(pachd: Pachd) -> None:
    way = TcpProxy(pachd.address)

    def lose_the_first() -> None:
        first, _ = way.accept()
        with first:
            first.sendall(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))  # an empty frame of settings: HTTP/2 is agreed upon
            first.shutdown(socket.SHUT_WR)
            while first.recv(4096):  # to close with something unread would take the frame back
                pass
        way.serve()

    threading.Thread(target=lose_the_first, daemon=True).start()
    assert connect(ServerTarget(way.address)).client.get_remote_version().major == 2
    way.close()


def test_reads_at_the_same_time_tell_of_an_outage_once(
    start_pachd: StartPachd, own_port: OwnPort, tmp_path: Path
) -> None:
    port, said = str(own_port()), list[str]()
    server = start_pachd(tmp_path / "root", "--port", port)
    connection = connect(ServerTarget(server.address), said.append)
    server.stop()
    with parallel_reads() as reads:
        found = [reads.submit(connection.retry, lambda: list(connection.client.list_repo())) for _ in range(8)]
        until(lambda: said)
        start_pachd(tmp_path / "root", "--port", port)
        assert [each.result() for each in found] == [[]] * 8
    assert len({each for each in said if "does not answer" in each}) == 1
    assert len([each for each in said if "answers again" in each]) == 1
