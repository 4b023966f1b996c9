"""A service deployed as a pipeline, for the commands that serve: its token made, its start waited for, its end."""

import time

from pipelines.analysis.measurement import optional_deployment
from pipelines.client import branches
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.client.services import service_credentials, service_discovery, service_settings
from pipelines.client.services.service_credentials import ServiceCredentials
from pipelines.client.services.service_discovery import ServiceEndpoint
from pipelines.client.services.service_roles import SEARCH, ServiceRole
from pipelines.cluster import gpu_holders
from pipelines.commands.kit import interrupts, optional_pipelines
from pipelines.commands.kit.terminal import display_path, say
from pipelines.commands.service.service_options import ServiceOptions, explained
from pipelines.errors import LookalikeError
from stages.serving.follow import configuration, promotion_source
from stages.serving.follow.configuration import ServiceConfiguration
from stages.serving.follow.pachyderm_client import PachydermAddress

_LOOK_EVERY = 0.5
"""Seconds between two questions whether it answers."""

_STARTS_WITHIN = 180.0
"""Seconds after which a service whose job runs, and that does not answer, cannot be reached from here."""

_GAP = (
    "each new commit starts it again: for some seconds it refuses connections, and then answers from the old index; a "
    "Deployment has no such gap: `lookalike specs` writes it, see docs/serving.md"
)


def change(connection: Connection, asked: ServiceOptions, role: ServiceRole, ends: bool) -> None:
    """Deploys the service, or deletes it. Raises LookalikeError."""
    if ends:
        off(connection, role)
        return
    with explained():
        deploy(connection, asked, role)


def deploy(connection: Connection, wanted: ServiceOptions, role: ServiceRole = SEARCH) -> None:
    """Deploys the service or, where it is deployed, updates it; waits until it answers. Raises StageError if it would
    not be safe, LookalikeError if it cannot be deployed or does not start."""
    optional_deployment.check(connection, role.pipeline)
    there = connection.retry(ProjectJobs(connection).pipelines).get(role.pipeline)
    before = there.details.transform.env if there is not None else {}
    proxy = wanted.proxy or before.get(service_discovery.PROXY, "")
    protected = _protection(connection, wanted, proxy, role)
    port = wanted.port or (there.details.service.external_port if there is not None else 0) or role.port
    has_tls = bool(protected.certificate) or service_credentials.kept_certificate(connection, role) is not None
    changed = service_credentials.put(connection, protected, role)
    optional_deployment.deploy(
        connection,
        role.pipeline,
        lambda each: say(str(each)),
        {role.pipeline: service_settings.settings(role, port, proxy, has_tls)},
        again=changed and there is not None,
    )
    say(f"the token that it asks for is in {display_path(service_discovery.token_file(connection, role))}")
    if connection.retry(gpu_holders.local_leases, connection) is None:
        say(_GAP)
    if lacking := _lacking(connection, role):
        say(lacking)
        return
    found = _answering(connection, role)
    if found is not None:
        say(f"{role.command}: {found.url}")


def off(connection: Connection, role: ServiceRole = SEARCH) -> None:
    """Deletes the deployed service, with its token and its secret; says so. Pipelines that it reads stay."""
    optional_pipelines.off(connection, role.pipeline, upstream=False)
    if service_credentials.remove(connection, role):
        say(f"secret {role.secret}: deleted")


def _lacking(connection: Connection, role: ServiceRole) -> str:
    """What keeps Pachyderm from starting the service, "" for nothing."""
    if role is SEARCH:
        index = Repository(connection, "index").good()
        if index is None or not index.exists("/"):
            return "the index has no pictures yet: Pachyderm starts the service when it has some"
        return ""
    head = connection.retry(branches.head, connection, promotion_source.REPO, promotion_source.BRANCH)
    # Pachyderm has made the branch with an empty commit, if it was not there.
    if not head or not Repository(connection, promotion_source.REPO, head).exists("/"):
        return f"{promotion_source.PromotionSource.empty}; Pachyderm then starts the service"
    return ""


def _protection(connection: Connection, wanted: ServiceOptions, proxy: str, role: ServiceRole) -> ServiceCredentials:
    """The token, and the certificate if one is named, checked as the service will check them. localpachd's services
    are reached through the loopback of its machine, those of a cluster by everybody."""
    given = configuration.read_token(wanted.token_file) if wanted.token_file else ""
    token = service_credentials.token(connection, given, role)
    is_local = connection.retry(gpu_holders.local_leases, connection) is not None
    kept = service_credentials.kept_certificate(connection, role) is not None and not wanted.certificate
    configuration.check(
        ServiceConfiguration(
            server=PachydermAddress(connection.address, connection.project),
            host=configuration.LOOPBACK if is_local or kept else configuration.EVERYWHERE,
            token=token,
            certificate=wanted.certificate,
            key=wanted.key,
            proxy=proxy,
        )
    )
    if wanted.certificate and wanted.key:
        return ServiceCredentials(token, wanted.certificate.read_bytes(), wanted.key.read_bytes())
    return ServiceCredentials(token)


def _answering(connection: Connection, role: ServiceRole) -> ServiceEndpoint | None:
    """The deployed service, once it answers searches or says why it cannot; None, with the reason said, if it cannot be
    reached. Raises LookalikeError if its job fails."""
    interrupts.explain("no longer waiting, but the service goes on starting: see `lookalike status`")
    say("waiting until it answers")
    running_since: float | None = None
    told = ""
    while True:
        interrupts.check()
        found = connection.retry(service_discovery.deployed, connection, role)
        said = None if found is None else service_discovery.status(found)
        if said is not None and said["message"] and said["message"] != told:
            told = said["message"]
            say(told)
        if said is not None and said["state"] != "loading":
            return found
        job = connection.retry(ProjectJobs(connection).newest, role.pipeline)
        if job is not None and job.state in ("failure", "unrunnable"):
            why = job.reason or job.state
            raise LookalikeError(f"the service did not start: {why}; see `lookalike logs {role.pipeline}`")
        if job is not None and job.state == "running":
            running_since = running_since or time.monotonic()
            if found is not None and said is None and time.monotonic() - running_since > _STARTS_WITHIN:
                say(
                    f"{found.url} does not answer here: `lookalike logs {role.pipeline}` shows whether it serves; a "
                    "port of nodes must be reachable from this machine, see docs/serving.md"
                )
                return None
        time.sleep(_LOOK_EVERY)
