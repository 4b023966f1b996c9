"""Where Pachyderm is: PACHD_ADDRESS, else the active context of pachctl's configuration, as pachctl itself looks."""

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from python_pachyderm import Client

from pipelines.errors import LookalikeError

_ANSWER_WITHIN = 10.0
"""Seconds that a server may take to answer the first call."""


@dataclass(frozen=True, slots=True)
class Target:
    """A server to talk to: its address, the project to work in, and what it takes to be let in."""

    address: str
    project: str = "default"
    token: str | None = None
    root_certificates: bytes | None = None


@dataclass(frozen=True, slots=True)
class Connection:
    """A client and the project it works in. `address` is for messages."""

    client: Client
    address: str
    project: str


def config_path(environment: Mapping[str, str]) -> Path:
    """pachctl's configuration file: $PACH_CONFIG, else ~/.pachyderm/config.json."""
    named = environment.get("PACH_CONFIG")
    return Path(named) if named else Path.home() / ".pachyderm" / "config.json"


def read_config(path: Path) -> dict[str, Any]:
    """pachctl's configuration; empty where there is none."""
    if not path.exists():
        return {}
    try:
        config = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise LookalikeError(f"cannot read pachctl's configuration {path}: {error}") from error
    if not isinstance(config, dict):
        raise LookalikeError(f"pachctl's configuration {path} is not a JSON object")
    return config


def target(environment: Mapping[str, str] = os.environ) -> Target:
    """The server that pachctl would talk to here."""
    config = read_config(config_path(environment)).get("v2", {})
    name = environment.get("PACH_CONTEXT") or config.get("active_context", "")
    context = config.get("contexts", {}).get(name, {})
    project = context.get("project") or "default"
    if environment.get("PACHD_ADDRESS"):
        return Target(environment["PACHD_ADDRESS"], project, context.get("session_token"))
    if context.get("pachd_address"):
        certificates = context.get("server_cas")
        return Target(
            context["pachd_address"],
            project,
            context.get("session_token"),
            base64.b64decode(certificates) if certificates else None,
        )
    raise LookalikeError(
        "no Pachyderm to talk to: start one here with `lookalike up`, set PACHD_ADDRESS=grpc://HOST:PORT, or run "
        "`pachctl connect`"
    )


def connect(to: Target) -> Connection:
    """A client for a server that has answered."""
    address = to.address if "://" in to.address else f"grpc://{to.address}"
    try:
        client = Client.new_from_pachd_address(address, auth_token=to.token, root_certs=to.root_certificates)
    except Exception as error:
        raise LookalikeError(f"{to.address} is no address of a Pachyderm server: {error}") from error
    try:
        grpc.channel_ready_future(client._channel).result(timeout=_ANSWER_WITHIN)
    except grpc.FutureTimeoutError as error:
        raise LookalikeError(
            f"no Pachyderm answers at {address}: start localpachd with `lookalike up`, or correct PACHD_ADDRESS"
        ) from error
    return Connection(client, address, to.project)
