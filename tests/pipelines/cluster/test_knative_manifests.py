"""The manifest for Knative: fields that it documents, and no pods while nobody asks."""

from typing import Any

import pytest
import yaml

from pipelines.client.services import service_discovery
from pipelines.cluster import knative_manifests, service_manifests
from pipelines.specifications import drafts, pipeline_specs
from pipelines.specifications.drafts import SpecDraft, SpecPatch

ANY = object()
"""Whatever Kubernetes knows there."""

FIELDS: dict[str, Any] = {
    "apiVersion": str,
    "kind": str,
    "metadata": {"name": str, "labels": ANY},
    "spec": {
        "template": {
            "metadata": {"labels": ANY, "annotations": ANY},
            "spec": {
                "affinity": ANY,
                "automountServiceAccountToken": bool,
                "containerConcurrency": int,
                "enableServiceLinks": bool,
                "imagePullSecrets": [{"name": str}],
                "nodeSelector": ANY,
                "responseStartTimeoutSeconds": int,
                "serviceAccountName": str,
                "timeoutSeconds": int,
                "tolerations": ANY,
                "containers": [
                    {
                        "args": [str],
                        "command": [str],
                        "env": [{"name": str, "value": str}],
                        "image": str,
                        "livenessProbe": ANY,
                        "name": str,
                        "ports": [{"containerPort": int, "name": str, "protocol": str}],
                        "readinessProbe": ANY,
                        "resources": {"limits": ANY, "requests": ANY},
                        "securityContext": {
                            "allowPrivilegeEscalation": bool,
                            "capabilities": {"drop": [str]},
                            "readOnlyRootFilesystem": bool,
                            "runAsGroup": int,
                            "runAsNonRoot": bool,
                            "runAsUser": int,
                            "seccompProfile": {"type": str},
                        },
                        "volumeMounts": [{"mountPath": str, "name": str, "readOnly": bool, "subPath": str}],
                    }
                ],
                "volumes": [{"name": str, "secret": {"secretName": str}, "emptyDir": ANY}],
            },
        },
        "traffic": ANY,
    },
}
"""The fields of a Service that Knative's API takes (config/core/300-resources/service.yaml and the masks of
pkg/apis/serving/fieldmask.go in knative/serving); of a pod's many others it refuses all."""

ANNOTATIONS = (
    "autoscaling.knative.dev/min-scale",
    "autoscaling.knative.dev/scale-to-zero-pod-retention-period",
    "serving.knative.dev/progress-deadline",
)
"""Those of a revision, as Knative's documentation of autoscaling and of deployments names them."""


@pytest.fixture
def draft() -> SpecDraft:
    """The service behind Knative's own proxy."""
    shipped = drafts.read(pipeline_specs.SHIPPED_SPECS / "classify" / "classify-serve.json")
    return shipped.patched(SpecPatch({"transform": {"env": {service_discovery.PROXY: "labels.example.org"}}}))


def check(value: Any, known: Any, place: str = "") -> None:
    """Every member of an object is a field that is known, with a value of its kind."""
    if known is ANY:
        return
    if isinstance(known, dict):
        assert value.keys() <= known.keys(), f"{place} has no field {value.keys() - known.keys()}"
        for name, each in value.items():
            check(each, known[name], f"{place}.{name}")
    elif isinstance(known, list):
        for each in value:
            check(each, known[0], place)
    else:
        assert isinstance(value, known), (place, value)


def test_knative_knows_every_field(draft: SpecDraft) -> None:
    (name,) = knative_manifests.manifests([draft])
    assert name == "lookalike-classify-serve-knative.yaml"
    (made,) = yaml.safe_load_all(knative_manifests.manifests([draft])[name])
    assert made == knative_manifests.service(draft)
    check(made, FIELDS)
    assert (made["apiVersion"], made["kind"]) == ("serving.knative.dev/v1", "Service")
    with pytest.raises(AssertionError, match="terminationGracePeriodSeconds"):
        check(service_manifests.deployment(draft)["spec"]["template"]["spec"], FIELDS["spec"]["template"]["spec"])


def test_there_are_no_pods_while_nobody_asks(draft: SpecDraft) -> None:
    template = knative_manifests.service(draft)["spec"]["template"]
    annotations = template["metadata"]["annotations"]
    assert annotations.keys() == set(ANNOTATIONS)
    assert all(isinstance(each, str) for each in annotations.values())
    assert annotations["autoscaling.knative.dev/min-scale"] == "0"
    assert template["spec"]["containerConcurrency"] == 32


def test_probes_ask_the_one_port_of_the_container(draft: SpecDraft) -> None:
    (found,) = knative_manifests.service(draft)["spec"]["template"]["spec"]["containers"]
    assert [(each["name"], each["containerPort"]) for each in found["ports"]] == [("http1", 30681)]
    assert found["readinessProbe"]["httpGet"] == {"path": "/ready"}
    assert found["livenessProbe"]["httpGet"] == {"path": "/health"}


def test_without_the_name_of_the_proxy_there_is_none() -> None:
    assert knative_manifests.manifests(drafts.find([pipeline_specs.SHIPPED_SPECS])) == {}
