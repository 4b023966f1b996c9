"""The variables and the port of a deployed service, which its specification leaves open."""

from typing import Any

from pipelines.client.services import protection, services
from pipelines.client.services.roles import ROLES, Role
from pipelines.specifications.drafts import Draft, Patch


def settings(role: Role, port: int, proxy: str, has_tls: bool) -> Patch:
    """The merge patch for a service at a node port, behind a proxy ("" for none) or with TLS of its own."""
    certificate = str(role.mounted / protection.CERTIFICATE) if has_tls else ""
    env = {services.PROXY: proxy, services.CERTIFICATE: certificate}
    return Patch({"service": {"external_port": port}, "transform": {"env": env}})


def as_running(draft: Draft, info: Any) -> Draft:
    """The specification of a service with what the pipeline that runs has been given, as far as it leaves that open."""
    running, env = info.details.transform.env, draft.get("transform", "env", default={})
    kept = {name: running[name] for name in (services.PROXY, services.CERTIFICATE) if running.get(name)}
    port = int(draft.number("service", "external_port"))
    if port == ROLES[draft.name].port:
        port = info.details.service.external_port or port
    open_ = {name: value for name, value in kept.items() if not env.get(name)}
    return draft.patched(Patch({"service": {"external_port": port}, "transform": {"env": open_}}))
