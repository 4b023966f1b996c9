"""The configuration of the service: the Pachyderm that it follows, the address that it listens on, its protection.

Read from variables and files, never from arguments that hold a secret. Knows no HTTP, and no call of Pachyderm.
"""

from __future__ import annotations

import ipaddress
import json
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stages.datum.contract import StageError
from stages.files.public_addresses import FETCH_FROM, Network, networks
from stages.knn.search_settings import SearchSettings, read_settings
from stages.serving.follow.pachyderm_client import PachydermAddress

PORT = 30680
LOOPBACK = "127.0.0.1"
EVERYWHERE = "0.0.0.0"

SECRETS = Path("/secrets/lookalike-serve")
"""The directory of the service's secrets in a container."""

TOKEN, CERTIFICATE, KEY, PACHD_TOKEN = "token", "tls.crt", "tls.key", "pachd-token"
"""The files in it."""

_PACHCTL = Path("/pachctl/config.json")
"""pachctl's configuration in a worker of Pachyderm, with a token where Pachyderm has authentication."""

_SHORTEST = 16
"""Characters of a token."""

_LISTEN = re.compile(r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<host>[^\s:\[\]]*)):(?P<port>[0-9]{1,5})")
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?")


@dataclass(frozen=True)
class ServiceConfiguration:
    """All of it. at: the id of the only commit set to serve, "" to follow the newest. port: 0 takes a free one. token:
    what requests must have, "" for none. certificate, key: files in PEM, for TLS. proxy: the name by which users reach
    the proxy with TLS in front of the service, "" for none. settings: those of the searches. by_vectors: whether the
    index is that of the vectors that people have put."""

    server: PachydermAddress
    at: str = ""
    host: str = LOOPBACK
    port: int = PORT
    token: str = field(default="", repr=False)
    certificate: Path | None = None
    key: Path | None = None
    proxy: str = ""
    settings: SearchSettings = field(default_factory=SearchSettings)
    fetched: tuple[Network, ...] = ()
    by_vectors: bool = False

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return is_loopback(self.host) and not self.proxy

    @property
    def url(self) -> str:
        """The address for users on this machine, without a path; its port is `port`."""
        host = {EVERYWHERE: LOOPBACK, "::": "::1"}.get(self.host, self.host)
        return f"{'https' if self.certificate else 'http'}://{f'[{host}]' if ':' in host else host}:{self.port}"


def check(configuration: ServiceConfiguration) -> ServiceConfiguration:
    """The configuration, if it is safe. Raises StageError with the way out if others could read what is sent, or ask
    without a token; or if the certificate and its key do not fit."""
    if bool(configuration.certificate) != bool(configuration.key):
        raise StageError("TLS needs both a certificate and its key: name --tls-cert and --tls-key")
    if configuration.certificate and configuration.key:
        _check_pair(configuration.certificate, configuration.key)
    if configuration.proxy and not _HOST.fullmatch(configuration.proxy):
        raise StageError(f"{configuration.proxy!r} is not the name of a proxy, such as pictures.example.org")
    if configuration.is_local:
        return configuration
    if not configuration.token:
        where = f"behind {configuration.proxy}" if configuration.proxy else f"at {configuration.host}"
        raise StageError(
            f"{where} others can ask for the original files, so the service needs a token: write a long "
            "random one into a file and name it with --token-file, or listen on 127.0.0.1 without a proxy"
        )
    if not (configuration.certificate or configuration.proxy):
        raise StageError(
            f"at {configuration.host} others can read the requests: name --tls-cert and --tls-key, or the proxy with "
            "TLS in front of the service with --behind-proxy, or listen on 127.0.0.1"
        )
    return configuration


def from_environment(
    environment: Mapping[str, str], secrets: Path = SECRETS, pachctl: Path = _PACHCTL, port: int = PORT
) -> ServiceConfiguration:
    """The configuration of the bare program: in a worker of Pachyderm, in a pod of Kubernetes, or anywhere else.

    secrets: the directory with the files TOKEN, CERTIFICATE, KEY and PACHD_TOKEN, as far as they exist. port:
    unless LISTEN names one. Raises StageError for a variable or a file that is not valid, and for what `check` refuses.
    """
    host, port = _listening(environment, port)
    certificate, key = (secrets / name if (secrets / name).is_file() else None for name in (CERTIFICATE, KEY))
    return check(
        ServiceConfiguration(
            server=_server(environment, secrets, pachctl),
            at=environment.get("AT", "").strip(),
            host=host,
            port=port,
            token=read_token(secrets / TOKEN) if (secrets / TOKEN).is_file() else "",
            certificate=certificate,
            key=key,
            proxy=environment.get("PROXY", "").strip(),
            settings=read_settings(environment),
            fetched=networks(environment.get(FETCH_FROM, "")),
        )
    )


def listening(text: str) -> tuple[str, int]:
    """The host and the port of HOST:PORT, with a host of IPv6 in brackets. Raises StageError for anything else."""
    found = _LISTEN.fullmatch(text.strip())
    if found is None or int(found["port"]) > 65535:
        raise StageError(f"{text!r} is not an address to listen on: write HOST:PORT, such as 0.0.0.0:{PORT}")
    return found["six"] or found["host"] or EVERYWHERE, int(found["port"])


def read_token(path: Path) -> str:
    """The token in a file. Raises StageError if there is none, or one that can be guessed."""
    token = _text(path)
    if len(token) < _SHORTEST or not re.fullmatch(r"[!-~]+", token):
        raise StageError(
            f"{path} does not hold a token: it needs {_SHORTEST} ASCII letters, digits or signs, and no spaces"
        )
    return token


def _listening(environment: Mapping[str, str], port: int) -> tuple[str, int]:
    """Where to listen. A worker of localpachd is reached through this machine's loopback, as it reaches its server."""
    if environment.get("LISTEN", "").strip():
        return listening(environment["LISTEN"])
    in_pod = "PPS_PIPELINE_NAME" in environment and not is_loopback(environment.get("PACHD_PEER_SERVICE_HOST", ""))
    return (EVERYWHERE if in_pod else LOOPBACK), port


def _server(environment: Mapping[str, str], secrets: Path, pachctl: Path) -> PachydermAddress:
    url = environment.get("PACHD_ADDRESS", "").strip()
    if not url and environment.get("PACHD_PEER_SERVICE_HOST"):
        host, port = environment["PACHD_PEER_SERVICE_HOST"], environment.get("PACHD_PEER_SERVICE_PORT") or "30650"
        url = f"grpc://{f'[{host}]' if ':' in host else host}:{port}"
    if not url:
        raise StageError("there is no Pachyderm to follow: name one in PACHD_ADDRESS, such as grpc://127.0.0.1:30650")
    project = environment.get("PACHD_PROJECT") or environment.get("PPS_PROJECT_NAME") or "default"
    own = secrets / PACHD_TOKEN
    token = _text(own) if own.is_file() else _session(pachctl)
    named = environment.get("PACH_CA_CERTS", "")
    return PachydermAddress(url, project, token or None, _bytes(Path(named)) if named else None)


def _session(pachctl: Path) -> str:
    """The token in pachctl's configuration, "" without one."""
    try:
        v2: Any = json.loads(pachctl.read_text(encoding="utf-8"))["v2"]
        return str(v2["contexts"][v2["active_context"]].get("session_token") or "")
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return ""


def _check_pair(certificate: Path, key: Path) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except OSError as error:  # ssl.SSLError is one
        reason = error.strerror or str(error)
        raise StageError(
            f"{certificate} and {key} are not a certificate and its key, in PEM and without a password: {reason}"
        ) from error


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, seen from itself."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _text(path: Path) -> str:
    try:
        return _bytes(path).decode("ascii").strip()
    except UnicodeDecodeError as error:
        raise StageError(f"{path} does not hold a token: it has letters other than ASCII's") from error


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StageError(f"cannot read {path}: {error.strerror}") from error
