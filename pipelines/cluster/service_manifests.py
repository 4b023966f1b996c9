"""The services as a Deployment and a Service of Kubernetes, beside Pachyderm: they follow the library or the promoted
model, and are not started again for each commit. Talks to no cluster."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from pipelines.checks import pods
from pipelines.client.services import service_discovery
from pipelines.client.services.service_roles import ROLES, ServiceRole
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.spec_writer import as_yaml
from stages.datum.stage_version import STAGE

_PACHD = "grpc://pachd:30650"
"""Pachyderm's address in its own namespace."""

_CACHE, _SCRATCH = "/cache", "/tmp"
USER = 1000
"""The user of the images."""

_ENDS_WITHIN = 20
"""Seconds until a pod is killed: those of the hook, in which the cluster stops sending requests, and of the end."""

_FREE = ("LISTEN", "PACHD_ADDRESS", "PACHD_PROJECT", STAGE, service_discovery.CERTIFICATE)
"""Variables that the manifest sets itself, or that have no meaning in it."""


def manifests(drafts: Sequence[SpecDraft]) -> Mapping[str, str]:
    """The manifests of the services among the specifications as YAML, by the names of their files. Image, resources,
    nodes and pull secrets are those of a specification. Without PROXY a service has TLS of its own, from its secret."""
    return {
        f"{name(draft)}.yaml": "".join(f"---\n{as_yaml(each)}" for each in (deployment(draft), service(draft)))
        for draft in drafts
        if draft.name in ROLES
    }


def name(draft: SpecDraft) -> str:
    """The name of a service's objects."""
    return f"lookalike-{draft.name}"


def deployment(draft: SpecDraft) -> dict[str, Any]:
    """The Deployment of one. A new pod takes over when it is ready, so that there is always one that answers."""
    made = pods.base_pod(draft)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name(draft), "labels": labels(draft)},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "selector": {"matchLabels": labels(draft)},
            "template": {
                "metadata": {"labels": labels(draft)},
                "spec": {
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    "terminationGracePeriodSeconds": _ENDS_WITHIN,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": USER,
                        "runAsGroup": USER,
                        "fsGroup": USER,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    **placed(made, ("nodeSelector", "priorityClassName", "tolerations")),
                    "containers": [_container(draft, made)],
                    "volumes": volumes(draft, defaultMode=0o440),
                },
            },
        },
    }


def service(draft: SpecDraft) -> dict[str, Any]:
    """The Service in front of one, inside the cluster."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name(draft), "labels": labels(draft)},
        "spec": {
            "selector": labels(draft),
            "ports": [{"name": "http", "port": 80 if proxy(draft) else 443, "targetPort": "http"}],
        },
    }


def labels(draft: SpecDraft) -> dict[str, str]:
    """The labels of a service's objects."""
    return {"app.kubernetes.io/name": name(draft)}


def placed(made: Mapping[str, Any], fields: Iterable[str]) -> dict[str, Any]:
    """The fields of a specification's pod that a service keeps: these, and its pull secrets."""
    secrets = [{"name": each} for each in made.get("imagePullSecrets") or ()]
    kept = {name: made[name] for name in fields if name in made}
    return {**kept, "imagePullSecrets": secrets} if secrets else kept


def container(draft: SpecDraft, made: Mapping[str, Any]) -> dict[str, Any]:
    """A service's container, without its ports and probes: `made` is the pod of its specification."""
    user, given = made["containers"][0], draft.get("transform", "env", default={})
    env = {
        "PACHD_ADDRESS": _PACHD,
        "PACHD_PROJECT": "default",
        "LISTEN": f"0.0.0.0:{_role(draft).port}",
        "CACHE": _CACHE,
        **{name: value for name, value in given.items() if value and name not in _FREE},
    }
    return {
        "name": "serve",
        "image": user["image"],
        "command": list(draft.get("transform", "cmd", default=())),
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "resources": user["resources"],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "secrets", "mountPath": str(PurePosixPath(_role(draft).mounted)), "readOnly": True},
            {"name": "cache", "mountPath": _CACHE},
            {"name": "tmp", "mountPath": _SCRATCH},
        ],
    }


def volumes(draft: SpecDraft, **of_secret: Any) -> list[dict[str, Any]]:
    """A service's volumes: its secret, and what it may write."""
    return [
        {"name": "secrets", "secret": {"secretName": _role(draft).secret, **of_secret}},
        {"name": "cache", "emptyDir": {}},
        {"name": "tmp", "emptyDir": {}},
    ]


def proxy(draft: SpecDraft) -> str:
    """The name of the proxy in front of a service, "" for none."""
    return str(draft.get("transform", "env", service_discovery.PROXY, default=""))


def _container(draft: SpecDraft, made: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **container(draft, made),
        "ports": [{"name": "http", "containerPort": _role(draft).port}],
        "readinessProbe": {**_probe(draft, "/ready"), "periodSeconds": 2},
        "livenessProbe": {**_probe(draft, "/health"), "periodSeconds": 10, "failureThreshold": 6},
        "lifecycle": {"preStop": {"exec": {"command": ["sleep", "5"]}}},
    }


def _probe(draft: SpecDraft, path: str) -> dict[str, Any]:
    scheme = "HTTP" if proxy(draft) else "HTTPS"
    return {"httpGet": {"path": path, "port": "http", "scheme": scheme}, "timeoutSeconds": 5}


def _role(draft: SpecDraft) -> ServiceRole:
    return ROLES[draft.name]
