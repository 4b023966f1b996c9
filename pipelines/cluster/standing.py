"""The service as a Deployment and a Service of Kubernetes, beside Pachyderm: it follows the library, and is not started
again for each commit. Talks to no cluster."""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from pipelines.checks import pods
from pipelines.client import protection, services
from pipelines.specifications.drafts import Draft
from pipelines.specifications.imagecache import as_yaml

FILE = "lookalike-serve.yaml"

_NAME = "lookalike-serve"
_LABELS = {"app.kubernetes.io/name": _NAME}
_PACHD = "grpc://pachd:30650"
"""Pachyderm's address in its own namespace."""

_CACHE, _SCRATCH = "/cache", "/tmp"
_USER = 1000
"""The user of the images."""

_ENDS_WITHIN = 20
"""Seconds until a pod is killed: those of the hook, in which the cluster stops sending requests, and of the end."""

_FREE = ("LISTEN", "PACHD_ADDRESS", "PACHD_PROJECT", "LOOKALIKE_STAGE", services.CERTIFICATE)
"""Variables that the manifest sets itself, or that have no meaning in it."""


def manifests(drafts: Sequence[Draft]) -> str:
    """The manifests as YAML, "" if the service is not among the specifications. Image, resources, nodes and pull
    secrets are those of its specification. Without PROXY the service has TLS of its own, from its secret."""
    draft = next((each for each in drafts if each.name == services.PIPELINE), None)
    if draft is None:
        return ""
    return "".join(f"---\n{as_yaml(each)}" for each in (deployment(draft), service(draft)))


def deployment(draft: Draft) -> dict[str, Any]:
    """The Deployment. A new pod takes over when it is ready, so that there is always one that answers."""
    made = pods.made(draft)
    kept: dict[str, Any] = {
        name: made[name] for name in ("nodeSelector", "priorityClassName", "tolerations") if name in made
    }
    if secrets := made.get("imagePullSecrets"):
        kept["imagePullSecrets"] = [{"name": each} for each in secrets]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": _NAME, "labels": _LABELS},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "selector": {"matchLabels": _LABELS},
            "template": {
                "metadata": {"labels": _LABELS},
                "spec": {
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    "terminationGracePeriodSeconds": _ENDS_WITHIN,
                    "securityContext": {
                        "runAsNonRoot": True,
                        "runAsUser": _USER,
                        "runAsGroup": _USER,
                        "fsGroup": _USER,
                        "seccompProfile": {"type": "RuntimeDefault"},
                    },
                    **kept,
                    "containers": [_container(draft, made)],
                    "volumes": [
                        {"name": "secrets", "secret": {"secretName": protection.SECRET, "defaultMode": 0o440}},
                        {"name": "cache", "emptyDir": {}},
                        {"name": "tmp", "emptyDir": {}},
                    ],
                },
            },
        },
    }


def service(draft: Draft) -> dict[str, Any]:
    """The Service in front of it, inside the cluster."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": _NAME, "labels": _LABELS},
        "spec": {
            "selector": _LABELS,
            "ports": [{"name": "http", "port": 80 if _proxy(draft) else 443, "targetPort": "http"}],
        },
    }


def _container(draft: Draft, made: Mapping[str, Any]) -> dict[str, Any]:
    user = made["containers"][0]
    given = draft.get("transform", "env", default={})
    env = {
        "PACHD_ADDRESS": _PACHD,
        "PACHD_PROJECT": "default",
        "LISTEN": f"0.0.0.0:{services.PORT}",
        "CACHE": _CACHE,
        **{name: value for name, value in given.items() if value and name not in _FREE},
    }
    return {
        "name": "serve",
        "image": user["image"],
        "command": list(draft.get("transform", "cmd", default=())),
        "env": [{"name": name, "value": value} for name, value in env.items()],
        "ports": [{"name": "http", "containerPort": services.PORT}],
        "resources": user["resources"],
        "readinessProbe": {**_probe(draft, "/ready"), "periodSeconds": 2},
        "livenessProbe": {**_probe(draft, "/health"), "periodSeconds": 10, "failureThreshold": 6},
        "lifecycle": {"preStop": {"exec": {"command": ["sleep", "5"]}}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "secrets", "mountPath": str(PurePosixPath(protection.MOUNTED)), "readOnly": True},
            {"name": "cache", "mountPath": _CACHE},
            {"name": "tmp", "mountPath": _SCRATCH},
        ],
    }


def _probe(draft: Draft, path: str) -> dict[str, Any]:
    scheme = "HTTP" if _proxy(draft) else "HTTPS"
    return {"httpGet": {"path": path, "port": "http", "scheme": scheme}, "timeoutSeconds": 5}


def _proxy(draft: Draft) -> str:
    return str(draft.get("transform", "env", services.PROXY, default=""))
