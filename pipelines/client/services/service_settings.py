"""The variables and the port of a deployed service, which its specification leaves open."""

from typing import Any

from pipelines.client.services import service_credentials, service_discovery
from pipelines.client.services.service_roles import ROLES, ServiceRole
from pipelines.specifications.drafts import SpecDraft, SpecPatch


def settings(role: ServiceRole, port: int, proxy: str, has_tls: bool) -> SpecPatch:
    """The merge patch for a service at a node port, behind a proxy ("" for none) or with TLS of its own."""
    certificate = str(role.mounted / service_credentials.CERTIFICATE) if has_tls else ""
    env = {service_discovery.PROXY: proxy, service_discovery.CERTIFICATE: certificate}
    return SpecPatch({"service": {"external_port": port}, "transform": {"env": env}})


def with_running_values(draft: SpecDraft, info: Any) -> SpecDraft:
    """The specification of a service with what the pipeline that runs has been given, as far as it leaves that open."""
    running, env = info.details.transform.env, draft.get("transform", "env", default={})
    kept = {
        name: running[name] for name in (service_discovery.PROXY, service_discovery.CERTIFICATE) if running.get(name)
    }
    port = int(draft.number("service", "external_port"))
    if port == ROLES[draft.name].port:
        port = info.details.service.external_port or port
    open_ = {name: value for name, value in kept.items() if not env.get(name)}
    return draft.patched(SpecPatch({"service": {"external_port": port}, "transform": {"env": open_}}))
