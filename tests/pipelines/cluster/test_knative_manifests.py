"""The manifest for Knative: fields that it documents, no pods while nobody asks, and the service as it is deployed."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from pipelines.client.services import service_credentials, service_discovery
from pipelines.cluster import knative_manifests, service_manifests
from pipelines.specifications import drafts, overlays, pipeline_specs, variables
from pipelines.specifications.drafts import SpecDraft, SpecPatch
from stages import classify_serve
from stages.serving.follow import configuration

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


def container(made: dict[str, Any]) -> dict[str, Any]:
    (found,) = made["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


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
    found = container(knative_manifests.service(draft))
    assert [(each["name"], each["containerPort"]) for each in found["ports"]] == [("http1", 30681)]
    assert found["readinessProbe"]["httpGet"] == {"path": "/ready"}
    assert found["livenessProbe"]["httpGet"] == {"path": "/health"}


def test_the_program_understands_its_variables_and_finds_its_secret(draft: SpecDraft, tmp_path: Path) -> None:
    made = knative_manifests.service(draft)
    found = container(made)
    environment = {each["name"]: each["value"] for each in found["env"]}
    (tmp_path / service_credentials.TOKEN).write_text("0123456789abcdef")
    read = configuration.from_environment(environment, tmp_path)
    assert (read.port, read.proxy) == (found["ports"][0]["containerPort"], "labels.example.org")
    mounts = {each["name"]: each["mountPath"] for each in found["volumeMounts"]}
    volumes = {each["name"]: each for each in made["spec"]["template"]["spec"]["volumes"]}
    assert mounts.keys() == volumes.keys()
    assert Path(mounts["secrets"]) == classify_serve.PROGRAM.secrets
    assert volumes["secrets"]["secret"]["secretName"] == "lookalike-classify-serve"
    assert found["command"] == ["python3", "-m", "stages.classify_serve"]
    assert {"/cache", "/tmp"} <= set(mounts.values())
    assert found["securityContext"]["readOnlyRootFilesystem"]


def test_overlays_hold_for_it_too() -> None:
    on_top = [overlays.load("registry", {"REGISTRY": "r.io/t", "TAG": "7"}), overlays.load("pull-secret", {})]
    found = overlays.apply(on_top, drafts.find([pipeline_specs.SHIPPED_SPECS]))
    found = variables.apply(["PROXY=labels.example.org"], found)
    (text,) = knative_manifests.manifests(found).values()
    (made,) = yaml.safe_load_all(text)
    assert container(made)["image"] == "r.io/t/lookalike-serve:7"
    assert made["spec"]["template"]["spec"]["imagePullSecrets"] == [{"name": "regcred"}]


def test_without_the_name_of_the_proxy_there_is_none() -> None:
    assert knative_manifests.manifests(drafts.find([pipeline_specs.SHIPPED_SPECS])) == {}
