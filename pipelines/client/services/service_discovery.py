"""The services that answer over HTTP: those on this machine, which register themselves in a directory of their user,
and those that are deployed as pipelines.

Knows how a service is found, whether it lives and which questions it takes; knows no question and no page.
"""

import contextlib
import http.client
import ipaddress
import json
import os
import ssl
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pipelines.client.server.connection import Connection
from pipelines.client.server.grpc_errors import suppress_not_found
from pipelines.client.services.service_roles import SEARCH, ServiceRole

PROXY = "PROXY"
CERTIFICATE = "TLS_CERT_FILE"
"""Variables of the deployed service: the name of the proxy in front of it; its certificate, if it has TLS."""

_ANSWERS_WITHIN = 2.0
"""Seconds within which a service that lives says how it is."""

_MOST = 1 << 20
"""Bytes of a status; a longer answer is not one."""


@dataclass(frozen=True, slots=True)
class ServiceEndpoint:
    """A service that answers: its URL without a path, the file of its token or the token itself (neither if it needs
    none), the certificate by which it is known (None if it has no TLS, or one that this machine trusts anyway), and
    `status`, its answer to GET /status. `words` name it in messages."""

    url: str
    words: str
    token_file: Path | None = None
    certificate: Path | None = None
    status: Mapping[str, Any] = field(default_factory=dict, compare=False)
    token: str = field(default="", repr=False)

    def headers(self) -> dict[str, str]:
        """The headers that authorise a request; none without a token. Raises OSError if the token's file is gone."""
        token = self.token
        if not token and self.token_file is not None:
            token = self.token_file.read_text(encoding="ascii").strip()
        return {"Authorization": f"Bearer {token}"} if token else {}

    @property
    def exposes_its_token(self) -> bool:
        """Whether others could read the token on its way: to another machine, without TLS."""
        parts = urlsplit(self.url)
        return bool(self.token or self.token_file) and parts.scheme != "https" and not is_loopback(parts.hostname or "")

    def trust(self) -> ssl.SSLContext | None:
        """For https: what to verify the service with. A certificate that is given must be the service's own, under
        whichever name. Raises OSError if it cannot be read."""
        if urlsplit(self.url).scheme != "https":
            return None
        if self.certificate is None:
            return ssl.create_default_context()
        context = ssl.create_default_context(cafile=str(self.certificate))
        context.check_hostname = False
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        return context

    def connection(self, seconds: float) -> http.client.HTTPConnection:
        """A connection that waits for each answer so long. Raises OSError if the certificate cannot be read."""
        parts, trust = urlsplit(self.url), self.trust()
        host = parts.hostname or ""
        if trust is None:
            return http.client.HTTPConnection(host, parts.port, timeout=seconds)
        return http.client.HTTPSConnection(host, parts.port, timeout=seconds, context=trust)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A service that runs on this machine, as it is registered. began: when its process started, in the system's own
    form, since process ids are reused. at: the commit that it serves, or "vectors"
    for other vectors than the index's; "" if it follows the newest."""

    url: str
    pid: int
    began: str
    cluster: str
    project: str
    token_file: str = ""
    certificate: str = ""
    at: str = ""


def state_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """The directory for what this user's commands keep from run to run."""
    state = environment.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "lookalike"


@contextlib.contextmanager
def register(
    connection: Connection, url: str, *, token_file: Path | None = None, certificate: Path | None = None, at: str = ""
) -> Iterator[bool]:
    """Makes a service of this process known to other commands of this user, as long as the context lasts. Gives whether
    that was possible: without a directory to write to the service is not found, and serves all the same."""
    entry = _Entry(
        url,
        os.getpid(),
        _began(os.getpid()),
        cluster(connection),
        connection.project,
        str(token_file.absolute()) if token_file else "",
        str(certificate.absolute()) if certificate else "",
        at,
    )
    path = _registered() / f"{entry.pid}-{urlsplit(url).port}.json"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        scratch = path.with_suffix(".new")
        with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            json.dump(asdict(entry), file)
        scratch.replace(path)
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        with contextlib.suppress(OSError):
            path.unlink()


def running(connection: Connection, role: ServiceRole = SEARCH) -> ServiceEndpoint | None:
    """A service that answers such questions for the newest commits of this server's project: one on this machine, else
    the deployed one. None if there is none, or none that this user may ask."""
    of = cluster(connection)
    for entry in _entries():
        if (entry.cluster, entry.project, entry.at) == (of, connection.project, ""):
            found = ServiceEndpoint(
                entry.url,
                f"the service at {entry.url}",
                Path(entry.token_file) if entry.token_file else None,
                Path(entry.certificate) if entry.certificate else None,
            )
            if answering := _answering(found, connection.project, role):
                return answering
    for each in dict.fromkeys((role, SEARCH)):  # a service of searches may classify, too
        found_there = deployed(connection, each)
        if found_there is not None and (answering := _answering(found_there, connection.project, role)):
            return answering
    return None


def deployed(connection: Connection, role: ServiceRole = SEARCH) -> ServiceEndpoint | None:
    """The service that is deployed as a pipeline, whether or not it answers; None if none is."""
    inspect = partial(connection.client.inspect_pipeline, role.pipeline, details=True, project_name=connection.project)
    info = None
    with suppress_not_found():
        info = next(iter(connection.retry(lambda: list(inspect()))), None)
    if info is None or not info.details.service.external_port:
        return None
    url = published_at(connection, info.details)
    token = token_file(connection, role)
    kept, behind_proxy = certificate_file(token), info.details.transform.env.get(PROXY)
    certificate = kept if not behind_proxy and kept.is_file() else None
    return ServiceEndpoint(
        url, f"the pipeline {role.pipeline} at {url}", token if token.is_file() else None, certificate
    )


def published_at(connection: Connection, details: Any) -> str:
    """The URL of the deployed service: that of its proxy, or its node port at the server's host."""
    env, proxy = details.transform.env, details.transform.env.get(PROXY, "")
    host = urlsplit(connection.address).hostname or "127.0.0.1"
    authority = f"{f'[{host}]' if ':' in host else host}:{details.service.external_port}"
    return f"https://{proxy}" if proxy else f"{'https' if env.get(CERTIFICATE) else 'http'}://{authority}"


def token_file(connection: Connection, role: ServiceRole = SEARCH) -> Path:
    """Where this user keeps the token of the deployed service of a project."""
    return state_directory() / "tokens" / f"{cluster(connection)}-{connection.project}{role.suffix}"


def certificate_file(token: Path) -> Path:
    """Where the certificate of the service with this file of a token is kept."""
    return token.with_name(f"{token.name}.pem")


def cluster(connection: Connection) -> str:
    """The id of a Pachyderm, by which it is known under any address."""
    return str(connection.retry(connection.client.inspect_cluster).id)


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, and what is sent to it stays on it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def status(service: ServiceEndpoint) -> dict[str, Any] | None:
    """The answer of a service to GET /status; None for none, or one that is not a service's. Its token is never sent
    where others could read it."""
    if urlsplit(service.url).hostname is None or service.exposes_its_token:
        return None
    try:
        with contextlib.closing(service.connection(_ANSWERS_WITHIN)) as connection:
            connection.request("GET", "/status", headers=service.headers())
            answer = connection.getresponse()
            said = json.loads(answer.read(_MOST)) if answer.status == http.client.OK else None
    except (OSError, ValueError, http.client.HTTPException):
        return None
    is_one = isinstance(said, dict) and "state" in said and isinstance(said.get("commits", ""), dict | None)
    return said if is_one else None


def _answering(service: ServiceEndpoint, project: str, role: ServiceRole) -> ServiceEndpoint | None:
    said = status(service)
    # Services of the first version, which do not tell it, search.
    if said is not None and said.get(role.member, role is SEARCH) in (None, False):
        return None
    # None while the first index is loaded.
    if said is None or (said["commits"] or {}).get("project", project) != project:
        return None
    return replace(service, status=said)


def _registered() -> Path:
    return state_directory() / "services"


def _entries() -> Iterator[_Entry]:
    """The services whose processes live, the newest first. Those of processes that were killed are forgotten."""
    found = []
    for path in _registered().glob("*.json"):
        try:
            found.append((path.stat().st_mtime_ns, path, _Entry(**json.loads(path.read_text()))))
        except (OSError, ValueError, TypeError):  # ended in the meantime, or another version's
            continue
    for _, path, entry in sorted(found, key=lambda each: each[0], reverse=True):
        if entry.began == _began(entry.pid):
            yield entry
        else:
            with contextlib.suppress(OSError):
                path.unlink()


def _began(pid: int) -> str:
    """The start of a process, as the system states it; "-" if there is none of that id."""
    if (Path("/proc") / "self").exists():
        try:
            # The name of the program, in brackets, may hold anything.
            return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[19]
        except (OSError, IndexError):
            return "-"
    said = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True).stdout
    return said.strip() or "-"
