"""Reaching a server: the values that lead to it, and the open connection."""

import atexit
import queue
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import grpc
from python_pachyderm import Client
from python_pachyderm.service import GRPC_CHANNEL_OPTIONS

from pipelines.client.server.grpc_errors import CurrentServer, remember_server
from pipelines.errors import LookalikeError

_CONNECTS_WITHIN = 10.0
"""Seconds within which a connection must be made."""

_TRIES_AGAIN = 0.5
"""Seconds without news after which a connection is asked for again."""

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


@dataclass(frozen=True, slots=True)
class Connection:
    """A client and its project. `address` is for messages; `namespace` see Target. `waiting` is
    called again and again while a call waits for something, with the reason in words, or with "" before the wait is
    worth a word. `doing`: the command in words, which its commits have in their descriptions."""

    client: Client
    address: str
    project: str
    waiting: Callable[[str], None] = _quiet
    namespace: str = ""
    doing: str = ""


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
