"""The server that a command talks to: the one it names, else the environment's, else the one of the library in whose
directory it is called, and only then the one of pachctl's active context."""

import base64
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pipelines.client.server import local_server, pachctl_config
from pipelines.client.server.connection import ServerTarget
from pipelines.errors import LookalikeError

_FORWARDED = "pachd"


def target(named: str = "", environment: Mapping[str, str] = os.environ) -> ServerTarget:
    """The server for a command that names this address, or "". Raises LookalikeError if there is none to choose, and
    never falls back from the library of this directory to another server."""
    address = named or environment.get("PACHD_ADDRESS", "")
    if address:
        # The project and the credentials are those of pachctl's context, as with pachctl.
        _, context = pachctl_config.active(environment)
        why = "which --address names" if named else "which PACHD_ADDRESS names"
        return _target(address, context, _certificates_file(environment), f"{address}, {why}")
    root = None if environment.get("PACH_CONTEXT") else local_server.library(environment)
    return _of_context(environment) if root is None else of_library(root, environment)


def is_free(named: str = "", environment: Mapping[str, str] = os.environ) -> bool:
    """Whether nothing names a server for this directory, so that a library can begin here: no address, no environment,
    no library here or above, and no context of pachctl but that of another directory's library."""
    if named or environment.get("PACHD_ADDRESS") or environment.get("PACH_CONTEXT"):
        return False
    if environment.get("LOOKALIKE_ROOT") or local_server.library(environment) is not None:
        return False
    name, context = pachctl_config.active(environment)
    return name == local_server.CONTEXT or not (context.get("pachd_address") or context.get("port_forwarders"))


def stopped(named: str = "", environment: Mapping[str, str] = os.environ) -> Path | None:
    """The root of the library for a command that names this address, or "", if its server does not run. None for one of
    another user, whose pipelines would run as this one."""
    if named or environment.get("PACHD_ADDRESS") or environment.get("PACH_CONTEXT"):
        return None
    root = local_server.library(environment)
    if root is None or not local_server.has_state(root) or root.stat().st_uid != os.getuid():
        return None
    return root if local_server.running(root) is None else None


def of_library(root: Path, environment: Mapping[str, str] = os.environ) -> ServerTarget:
    """The local server of the library in a root. Raises LookalikeError if it is not running."""
    server = local_server.running(root)
    if server is None:
        raise LookalikeError(
            f"the server of the library in {root} is not running: start it with `lookalike up`, or name another server "
            "with --address"
        )
    context = pachctl_config.of_address(server.address, environment)
    words = f"the library in {root}, at {server.address}"
    certificates = _certificates(context, pachctl_config.config_path(environment))
    return replace(_target(server.address, context, certificates, words), local=True)


def _of_context(environment: Mapping[str, str]) -> ServerTarget:
    name, context = pachctl_config.active(environment)
    path = pachctl_config.config_path(environment)
    explicit = bool(environment.get("PACH_CONTEXT"))
    if name and not context and name not in pachctl_config.read_config(path)["v2"]["contexts"]:
        chosen = "PACH_CONTEXT" if explicit else "its active context"
        raise LookalikeError(f"{path} has no context {name}, which {chosen} names: see `pachctl config list context`")
    address = context.get("pachd_address")
    forwarders = context.get("port_forwarders")
    if not address and isinstance(forwarders, dict) and _FORWARDED in forwarders:
        address = f"grpc://localhost:{forwarders[_FORWARDED]}"
    if not address:
        raise LookalikeError(
            "no Pachyderm server is configured: start one here with `lookalike up`, name one with "
            "--address grpc://HOST:PORT or in PACHD_ADDRESS, or run `pachctl connect grpc://HOST:PORT`"
        )
    if name == local_server.CONTEXT and not explicit:
        raise LookalikeError(
            f"there is no library in this directory or above it. pachctl's active context is the local server at "
            f"{address}, which belongs to another directory: change to that, name the server with --address {address}, "
            "or start one here with `lookalike up`"
        )
    found = _target(str(address), context, _certificates(context, path), f"{address}, pachctl's context {name}")
    return replace(found, local=name == local_server.CONTEXT)


def _target(address: str, context: Mapping[str, Any], certificates: bytes | None, words: str) -> ServerTarget:
    project = str(context.get("project") or "default")
    return ServerTarget(
        address,
        project,
        context.get("session_token"),
        certificates,
        str(context.get("namespace") or ""),
        words=words if project == "default" else f"{words}, project {project}",
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
