"""Finding and reaching the server: PACHD_ADDRESS, else the active context of pachctl's configuration, as pachctl
does."""

import atexit
import base64
import json
import os
import queue
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from python_pachyderm import Client

from pipelines.client.failures import unreachable
from pipelines.errors import LookalikeError

_CONNECTS_WITHIN = 10.0
"""Seconds within which a connection must be made."""

_IN_CONTAINERS = Path("/pachctl/config.json")
"""The configuration that Pachyderm mounts into containers that may talk to it."""


@dataclass(frozen=True, slots=True)
class Target:
    """A server: its address, the project to work in, and the credentials. `namespace` is its namespace in the
    Kubernetes cluster, "" if the configuration does not name one."""

    address: str
    project: str = "default"
    token: str | None = None
    root_certificates: bytes | None = None
    namespace: str = ""


def _quiet(_: str) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Connection:
    """A client and its project. `address` is for messages. `waiting` is called again and again while a call waits for
    something, with the reason in words, or with "" before the wait is worth a word."""

    client: Client
    address: str
    project: str
    waiting: Callable[[str], None] = _quiet


def config_path(environment: Mapping[str, str]) -> Path:
    """pachctl's configuration file: $PACH_CONFIG, else that of a container, else ~/.pachyderm/config.json."""
    named = environment.get("PACH_CONFIG")
    if named:
        return Path(named)
    return _IN_CONTAINERS if _IN_CONTAINERS.exists() else Path.home() / ".pachyderm" / "config.json"


def read_config(path: Path) -> dict[str, Any]:
    """pachctl's configuration, with an object `v2` in it and objects in its `contexts`; both empty where there is no
    file. Raises LookalikeError for anything else."""
    try:
        config = json.loads(path.read_text())
    except FileNotFoundError:
        config = {}
    except OSError as error:
        raise LookalikeError(f"cannot read pachctl's configuration {path}: {error.strerror}") from error
    except ValueError as error:
        raise LookalikeError(f"pachctl's configuration {path} is not JSON: {error}") from error
    v2 = config.setdefault("v2", {}) if isinstance(config, dict) else None
    contexts = v2.setdefault("contexts", {}) if isinstance(v2, dict) else None
    if not isinstance(contexts, dict) or not all(isinstance(each, dict) for each in contexts.values()):
        raise LookalikeError(f"{path} is not pachctl's configuration: correct it, or name another in PACH_CONFIG")
    return dict(config)


def target(environment: Mapping[str, str] = os.environ) -> Target:
    """The server that pachctl would talk to here. Raises LookalikeError if the configuration names none, or
    is damaged."""
    path = config_path(environment)
    config = read_config(path)["v2"]
    name = environment.get("PACH_CONTEXT") or config.get("active_context") or ""
    context = config["contexts"].get(name, {})
    address = environment.get("PACHD_ADDRESS")
    if name and name not in config["contexts"] and not address:
        chosen = "PACH_CONTEXT" if environment.get("PACH_CONTEXT") else "its active context"
        raise LookalikeError(f"{path} has no context {name}, which {chosen} names: see `pachctl config list context`")
    certificates = _certificates_file(environment) if address else _certificates(context, path)
    address = address or context.get("pachd_address")
    forwarders = context.get("port_forwarders")
    if not address and isinstance(forwarders, dict) and "pachd" in forwarders:
        address = f"grpc://localhost:{forwarders['pachd']}"
    if not address:
        raise LookalikeError(
            "no Pachyderm server is configured: start one here with `lookalike up`, set "
            "PACHD_ADDRESS=grpc://HOST:PORT, or run `pachctl connect grpc://HOST:PORT`"
        )
    namespace = str(context.get("namespace") or "")
    return Target(
        str(address), context.get("project") or "default", context.get("session_token"), certificates, namespace
    )


def _certificates(context: Mapping[str, Any], path: Path) -> bytes | None:
    encoded = context.get("server_cas")
    try:
        return base64.b64decode(encoded, validate=True) if encoded else None
    except (ValueError, TypeError) as error:
        raise LookalikeError(f"server_cas of the context in {path} is not base64: {error}") from error


def _certificates_file(environment: Mapping[str, str]) -> bytes | None:
    named = environment.get("PACH_CA_CERTS")
    try:
        return Path(named).read_bytes() if named else None
    except OSError as error:
        raise LookalikeError(f"cannot read {named}, which PACH_CA_CERTS names: {error.strerror}") from error


def connect(to: Target) -> Connection:
    """A client with an open connection. Raises LookalikeError if no server answers, at once where that is certain."""
    address = to.address if "://" in to.address else f"grpc://{to.address}"
    try:
        client = Client.new_from_pachd_address(address, auth_token=to.token, root_certs=to.root_certificates)
    except (ValueError, TypeError) as error:
        raise LookalikeError(
            f"{to.address} is not a valid address of a Pachyderm server, such as grpc://127.0.0.1:30650: {error}"
        ) from error
    # A channel that is open when the interpreter exits can keep gRPC waiting for ever.
    atexit.register(client._channel.close)
    if not _connects(client._channel):
        raise LookalikeError(unreachable(address))
    return Connection(client, address, to.project)


def here() -> Connection:
    """A connection to the server that pachctl would use here."""
    return connect(target())


def _connects(channel: grpc.Channel) -> bool:
    changes: queue.SimpleQueue[grpc.ChannelConnectivity] = queue.SimpleQueue()
    heard = changes.put
    channel.subscribe(heard, try_to_connect=True)
    try:
        while True:
            state = changes.get(timeout=_CONNECTS_WITHIN)
            # gRPC would keep trying after a failure; the person at the terminal wants to know at once.
            if state is grpc.ChannelConnectivity.READY or state in _FAILED:
                return state is grpc.ChannelConnectivity.READY
    except queue.Empty:
        return False
    finally:
        channel.unsubscribe(heard)


_FAILED = (grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.SHUTDOWN)
