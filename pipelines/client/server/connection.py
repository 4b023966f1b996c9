"""Reaching a server: the values that lead to it, and the open connection."""

import atexit
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property, partial
from typing import Any, ParamSpec, TypeVar

import grpc
from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc
from python_pachyderm.proto.v2.pps import pps_pb2, pps_pb2_grpc
from python_pachyderm.service import GRPC_CHANNEL_OPTIONS

from pipelines.client.server.grpc_errors import (
    CurrentServer,
    cause,
    explain,
    is_aborted,
    is_unavailable,
    remember_server,
)
from pipelines.errors import LookalikeError

_CONNECTS_WITHIN = 10.0
"""Seconds within which a connection must be made."""

_TRIES_AGAIN = 0.5
"""Seconds without news after which a connection is asked for again, and between two tries of a call."""

LONGEST = timedelta(minutes=2)
"""The longest outage: a pachd that Kubernetes starts again is ready within one minute."""

_PAUSES = (0.05, 0.2, 0.5, 1.0, 2.0)
"""Seconds before a call that the server's database has aborted is made again."""

_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")

# By default gRPC lets up to two minutes pass between two attempts to connect again. And all channels of a process share
# what they know of an address: a new one would not try it while an older one waits to try it again.
GRPC_CHANNEL_OPTIONS.extend([("grpc.max_reconnect_backoff_ms", 3000), ("grpc.use_local_subchannel_pool", 1)])


@dataclass(frozen=True, slots=True)
class ServerTarget:
    """A server: its address, the project to work in, and the credentials. `namespace` is its namespace in the
    Kubernetes cluster, "" if the configuration does not name one. `local`: whether it is that of a library on this
    machine. `words` say to people which server it is and why it was chosen."""

    address: str
    project: str = "default"
    token: str | None = field(default=None, repr=False)
    root_certificates: bytes | None = None
    namespace: str = ""
    local: bool = False
    words: str = field(default="", compare=False)


def _quiet(_: str) -> None:
    pass


def _unknown() -> Any | None:
    return None


@dataclass(frozen=True)
class Connection:
    """A client and its project, with Pachyderm's calls, and the messages that name things of the project.

    `address` is for people; `namespace` see Target. `waiting` is called again and again while a call waits for
    something, with the reason in words, or with "" before the wait is worth a word. `doing`: the command in words, as
    its commits have it in their descriptions.
    """

    client: Client
    address: str
    project: str
    waiting: Callable[[str], None] = _quiet
    namespace: str = ""
    doing: str = ""
    _outage: "_Outage" = field(default_factory=lambda: _Outage(), init=False, repr=False, compare=False)

    @cached_property
    def pfs(self) -> Any:
        """The calls about data."""
        return pfs_pb2_grpc.APIStub(self.client._channel)

    @cached_property
    def pps(self) -> Any:
        """The calls about work."""
        return pps_pb2_grpc.APIStub(self.client._channel)

    def retry(self, read: Callable[_Given, _Found], *given: _Given.args, **named: _Given.kwargs) -> _Found:
        """The result of `read`, which is called again from its beginning while the server does not answer, as when
        pachd restarts, and says so. Never for calls that change anything: nobody knows how far such a call has come.
        Raises LookalikeError after LONGEST."""
        while True:
            try:
                found = self.change(partial(read, *given, **named))
            except (grpc.RpcError, ConnectionError) as error:
                failed = cause(error)
                if failed is None or not is_unavailable(failed):
                    raise
                self._outage.wait(self, failed)
            else:
                self._outage.end(self)
                return found

    def change(self, call: Callable[[], _Found], happened: Callable[[], Any | None] = _unknown) -> _Found:
        """The result of a call, one that changes something, too, which is made again if the server's database aborts
        it.

        happened: for a call that must not be made twice, asked before each repetition: the call's result if its change
        was made all the same, else None. Raises what the call does.
        """
        for pause in _PAUSES:
            try:
                return call()
            except grpc.RpcError as error:
                if not is_aborted(error):
                    raise
            time.sleep(pause)
            found: _Found | None = happened()
            if found is not None:
                return found
        return call()

    def in_project(self) -> Any:
        """The project."""
        return pfs_pb2.Project(name=self.project)

    def repo(self, name: str, type_: str = "user") -> Any:
        """A repo."""
        return pfs_pb2.Repo(name=name, type=type_, project=self.in_project())

    def branch(self, repo: str, name: str = "master") -> Any:
        """A branch of a repo."""
        return pfs_pb2.Branch(repo=self.repo(repo), name=name)

    def commit(self, repo: str, id_: str, type_: str = "user") -> Any:
        """A commit of a repo, by its id, by that of a commit set, or as an ancestor; "" for the head of master."""
        named = self.repo(repo, type_)
        return pfs_pb2.Commit(repo=named, branch=pfs_pb2.Branch(repo=named, name="" if id_ else "master"), id=id_)

    def inspect(self, commit: Any, until: int = pfs_pb2.STARTED) -> Any:
        """The CommitInfo of a commit, once that is started or what else it is to be."""
        return self.pfs.InspectCommit(pfs_pb2.InspectCommitRequest(commit=commit, wait=until))

    def pipeline(self, name: str) -> Any:
        """A pipeline."""
        return pps_pb2.Pipeline(name=name, project=self.in_project())

    def job(self, pipeline: str, id_: str) -> Any:
        """A job of a pipeline."""
        return pps_pb2.Job(pipeline=self.pipeline(pipeline), id=id_)


def connect(to: ServerTarget, waiting: Callable[[str], None] = _quiet) -> Connection:
    """A client with an open connection. `waiting`: see Connection. Raises LookalikeError if no server answers, at
    once where that is certain."""
    address = to.address if "://" in to.address else f"grpc://{to.address}"
    try:
        client = Client.new_from_pachd_address(address, auth_token=to.token, root_certs=to.root_certificates)
    except (ValueError, TypeError) as error:
        raise LookalikeError(
            f"{to.address} is not a valid address of a Pachyderm server, such as grpc://127.0.0.1:30650: {error}"
        ) from error
    # A channel that is open when the interpreter exits can keep gRPC waiting for ever.
    atexit.register(client._channel.close)
    server = CurrentServer(address, to.local, to.namespace)
    remember_server(server)
    if not _connects(client._channel):
        raise LookalikeError(server.absent())
    return Connection(client, address, to.project, waiting, to.namespace)


def _connects(channel: grpc.Channel) -> bool:
    changes: queue.SimpleQueue[grpc.ChannelConnectivity] = queue.SimpleQueue()
    heard = changes.put
    until = time.monotonic() + _CONNECTS_WITHIN
    while time.monotonic() < until:
        channel.subscribe(heard, try_to_connect=True)
        try:
            while True:
                state = changes.get(timeout=_TRIES_AGAIN)
                # gRPC would keep trying after a failure; the person at the terminal wants to know at once.
                if state is grpc.ChannelConnectivity.READY or state in _FAILED:
                    return state is grpc.ChannelConnectivity.READY
        except queue.Empty:  # it still connects; or a connection was lost at once, of which gRPC may tell nothing
            pass
        finally:
            channel.unsubscribe(heard)
    return False


_FAILED = (grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.SHUTDOWN)


class _Outage:
    """The outage of a connection's server, if there is one: of all reads at a time, so that people hear of it once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._began: float | None = None
        self._reason = ""

    def wait(self, connection: Connection, failed: grpc.RpcError) -> None:
        """Waits for the next attempt."""
        with self._lock:
            if self._began is None:
                self._began = time.monotonic()
                until = f"{datetime.now() + LONGEST:%H:%M:%S}"
                self._reason = (
                    f"the library's server at {connection.address} does not answer, trying again until {until}"
                )
            if time.monotonic() - self._began > LONGEST.total_seconds():
                raise LookalikeError(explain(failed)) from failed
            connection.waiting(self._reason)
        time.sleep(_TRIES_AGAIN)

    def end(self, connection: Connection) -> None:
        """The server has answered."""
        if self._began is None:
            return
        with self._lock:
            if self._began is not None:
                self._began = None
                connection.waiting(
                    f"the library's server at {connection.address} answers again, at {datetime.now():%H:%M:%S}"
                )
