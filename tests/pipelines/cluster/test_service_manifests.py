"""The manifests of the service: fields that Kubernetes knows, and what keeps it answering and harmless."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes import client

import stages.classify_serve
import stages.serve
from pipelines.client.services import service_credentials, service_discovery, service_roles
from pipelines.cluster import knative_manifests, service_manifests
from pipelines.specifications import drafts, overlays, pipeline_specs, variables
from pipelines.specifications.drafts import SpecDraft, SpecPatch
from stages.serving.follow import configuration


@pytest.fixture(params=["serve/serve.json", "classify/classify-serve.json"])
def shipped(request: pytest.FixtureRequest) -> SpecDraft:
    return drafts.read(pipeline_specs.SHIPPED_SPECS / request.param)


def behind(draft: SpecDraft, proxy: str) -> SpecDraft:
    return draft.patched(SpecPatch({"transform": {"env": {service_discovery.PROXY: proxy}}}))


def pods(draft: SpecDraft) -> list[dict[str, Any]]:
    """The pods of a service in its manifests, for Kubernetes and, of the classifier, for Knative."""
    made = [service_manifests.deployment(draft)]
    made += [knative_manifests.service(draft)] if draft.name == service_roles.CLASSIFY.pipeline else []
    return [each["spec"]["template"]["spec"] for each in made]


def check_fields(value: Any, kind: str) -> None:
    """Every member of an object is a field of the kind that Kubernetes' own client knows, at any depth."""
    if kind.startswith("List["):
        for each in value:
            check_fields(each, kind.removeprefix("List[")[:-1])
    elif kind == "Dict[str, str]":
        assert all(isinstance(name, str) and isinstance(each, str) for name, each in value.items()), value
    elif hasattr(client, kind):
        model = getattr(client, kind)
        names = {outer: inner for inner, outer in model.attribute_map.items()}
        for name, each in value.items():
            assert name in names, f"{kind} has no field {name}"
            check_fields(each, model.openapi_types[names[name]])
    else:
        plain: tuple[type, ...] = {"int": (int,), "str": (str,), "bool": (bool,), "object": (int, str)}[kind]
        assert isinstance(value, plain), (value, kind)


@pytest.mark.parametrize("proxy", ["", "pictures.example.org"])
def test_kubernetes_knows_every_field(shipped: SpecDraft, proxy: str) -> None:
    draft = behind(shipped, proxy)
    (text,) = service_manifests.manifests([draft]).values()
    made, before = yaml.safe_load_all(text)
    assert (made, before) == (service_manifests.deployment(draft), service_manifests.service(draft))
    check_fields(made, "V1Deployment")
    check_fields(before, "V1Service")
    with pytest.raises(AssertionError, match="V1PodSpec has no field volume"):
        check_fields({"volume": []}, "V1PodSpec")


def test_there_is_always_a_pod_that_answers(shipped: SpecDraft) -> None:
    made = service_manifests.deployment(shipped)
    assert made["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert made["spec"]["selector"]["matchLabels"] == made["spec"]["template"]["metadata"]["labels"]
    (container,) = made["spec"]["template"]["spec"]["containers"]
    probes = {name: container[name]["httpGet"] for name in ("readinessProbe", "livenessProbe")}
    assert {name: (probe["path"], probe["scheme"]) for name, probe in probes.items()} == {
        "readinessProbe": ("/ready", "HTTPS"),
        "livenessProbe": ("/health", "HTTPS"),
    }
    assert service_manifests.service(shipped)["spec"]["selector"] == made["spec"]["selector"]["matchLabels"]


def test_it_may_do_nothing_but_serve(shipped: SpecDraft) -> None:
    assert not service_manifests.deployment(shipped)["spec"]["template"]["spec"]["automountServiceAccountToken"]
    for pod in pods(shipped):
        (container,) = pod["containers"]
        rights = {**pod.get("securityContext", {}), **container["securityContext"]}
        assert rights["runAsNonRoot"] and rights["readOnlyRootFilesystem"]
        assert (rights["allowPrivilegeEscalation"], rights["capabilities"]) == (False, {"drop": ["ALL"]})
        mounted = {each["name"]: each for each in container["volumeMounts"]}
        assert mounted.keys() == {each["name"] for each in pod["volumes"]}
        assert mounted["secrets"]["readOnly"]
        assert {"/cache", "/tmp"} <= {each["mountPath"] for each in mounted.values()}
        assert container["resources"]["requests"].keys() == {"cpu", "memory"}


def test_the_program_understands_its_variables(shipped: SpecDraft, tmp_path: Path) -> None:
    """As far as they can be read here: its secrets are those of the manifest, in another directory."""
    draft = behind(shipped, "pictures.example.org")
    (tmp_path / service_credentials.TOKEN).write_text("0123456789abcdef")
    program = {"serve": stages.serve, "classify-serve": stages.classify_serve}[draft.name].PROGRAM
    for pod in pods(draft):
        (container,) = pod["containers"]
        environment = {each["name"]: each["value"] for each in container["env"]}
        assert not [name for name in environment if "TOKEN" in name]
        read = configuration.from_environment(environment, tmp_path)
        port = container["ports"][0]["containerPort"]
        assert (read.host, read.port, read.proxy) == ("0.0.0.0", port, "pictures.example.org")
        assert read.server.url == "grpc://pachd:30650"
        (secrets,) = [each["mountPath"] for each in container["volumeMounts"] if each["name"] == "secrets"]
        assert (Path(secrets), read.port) == (program.secrets, program.port)
        assert pod["volumes"][0]["secret"]["secretName"] == service_roles.ROLES[draft.name].secret
        assert container["command"] == ["python3", "-m", f"stages.{draft.name.replace('-', '_')}"]


def test_overlays_and_variables_hold_for_it_too(shipped: SpecDraft) -> None:
    on_top = [overlays.load("registry", {"REGISTRY": "r.io/t", "TAG": "7"}), overlays.load("pull-secret", {})]
    found = overlays.apply(on_top, drafts.find([pipeline_specs.SHIPPED_SPECS]))
    found = variables.apply(["PROXY=pictures.example.org"], found)
    made, before = yaml.safe_load_all(service_manifests.manifests(found)["lookalike-serve.yaml"])
    for pod in (made["spec"]["template"]["spec"], *pods(next(each for each in found if each.name == shipped.name))):
        assert pod["containers"][0]["image"] == "r.io/t/lookalike-serve:7"
        assert pod["imagePullSecrets"] == [{"name": "regcred"}]
    assert made["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]["httpGet"]["scheme"] == "HTTP"
    assert before["spec"]["ports"][0]["port"] == 80
    nodes = SpecPatch({"scheduling_spec": {"node_selector": {"disk": "fast"}}})
    made = service_manifests.deployment(shipped.patched(nodes))
    assert made["spec"]["template"]["spec"]["nodeSelector"] == {"disk": "fast"}


def test_a_directory_without_the_service_has_no_manifest() -> None:
    found = [draft for draft in drafts.find([pipeline_specs.SHIPPED_SPECS]) if draft.name not in service_roles.ROLES]
    assert service_manifests.manifests(found) == {}
