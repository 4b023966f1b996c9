"""The service of the promoted classifier as a Service of Knative, which has no pods while nobody asks.

Talks to no cluster. Knative knows fewer fields of a pod than Kubernetes: nodes and tolerations only where its operator
has switched their features on, and no hooks, no priority class and no time to end.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.checks import pods
from pipelines.client.services.service_roles import CLASSIFY
from pipelines.cluster import service_manifests
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.spec_writer import as_yaml

_AT_ONCE = 32
"""Requests that one pod gets at a time: as many pictures as a forward pass takes."""

_STAYS = "5m"
"""The time for which the last pod stays without a request: a start takes some ten seconds, to import TensorFlow."""

_STARTS_WITHIN = "600s"
"""The longest start of the first pod, which fetches the image."""

_FEATURES = ("nodeSelector", "tolerations")
"""Fields of a pod that Knative takes where its operator has switched their features on."""


def manifests(drafts: Sequence[SpecDraft]) -> Mapping[str, str]:
    """The manifest as YAML, by the name of its file. There is none without PROXY, the name by which Knative is reached:
    it ends TLS in front of its services, and talks to them without."""
    return {
        f"{service_manifests.name(draft)}-knative.yaml": f"---\n{as_yaml(service(draft))}"
        for draft in drafts
        if draft.name == CLASSIFY.pipeline and service_manifests.proxy(draft)
    }


def service(draft: SpecDraft) -> dict[str, Any]:
    """The Service of Knative for a specification."""
    made = pods.base_pod(draft)
    return {
        "apiVersion": "serving.knative.dev/v1",
        "kind": "Service",
        "metadata": {"name": service_manifests.name(draft), "labels": service_manifests.labels(draft)},
        "spec": {
            "template": {
                "metadata": {
                    "labels": service_manifests.labels(draft),
                    "annotations": {
                        "autoscaling.knative.dev/min-scale": "0",
                        "autoscaling.knative.dev/scale-to-zero-pod-retention-period": _STAYS,
                        "serving.knative.dev/progress-deadline": _STARTS_WITHIN,
                    },
                },
                "spec": {
                    "containerConcurrency": _AT_ONCE,
                    "timeoutSeconds": 300,
                    "enableServiceLinks": False,
                    **service_manifests.placed(made, _FEATURES),
                    "containers": [_container(draft, made)],
                    "volumes": service_manifests.volumes(draft),
                },
            }
        },
    }


def _container(draft: SpecDraft, made: Mapping[str, Any]) -> dict[str, Any]:
    container = service_manifests.container(draft, made)
    return {
        **container,
        "ports": [{"name": "http1", "containerPort": CLASSIFY.port}],
        # A probe without a port asks the one of the container.
        "readinessProbe": {"httpGet": {"path": "/ready"}, "timeoutSeconds": 5, "failureThreshold": 3},
        "livenessProbe": {
            "httpGet": {"path": "/health"},
            "timeoutSeconds": 5,
            "periodSeconds": 10,
            "failureThreshold": 6,
        },
        "securityContext": {
            **container["securityContext"],
            "runAsNonRoot": True,
            "runAsUser": service_manifests.USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
