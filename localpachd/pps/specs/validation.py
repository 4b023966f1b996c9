"""The rules of pipeline specifications, in Pachyderm's order and words. Changes nothing, reads nothing else.

Specifications are CreatePipelineRequests as protojson mappings with snake_case names.
"""

import json
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from localpachd.errors import InvalidArgument, PachError, Unimplemented, prefixed
from localpachd.pfs import cron_schedules, names
from localpachd.pps.specs import inputs
from localpachd.storage import object_urls, patterns
from speclang import quantities, warm_annotations
from speclang.inputs import COMBINATIONS, InputNameRule, name_faults
from speclang.names import KUBERNETES_LIMIT, PIPELINE_LIMIT, NameRule, kubernetes_name, pipeline_faults

REPROCESS = ("until_success", "every_job")
_LAST_PORT = 65535
_SERVICE_TYPES = ("ClusterIP", "LoadBalancer", "NodePort")


def check_request(raw: Mapping[str, Any]) -> None:
    """The checks made before defaults are filled in."""
    name = raw["pipeline"].get("name", "")
    if not name:
        raise PachError("invalid pipeline spec: request.Pipeline.Name cannot be empty")
    _check_name(name, raw["pipeline"]["project"]["name"])
    if "tf_job" in raw:
        raise PachError("embedding TFJobs in pipelines is not supported yet")
    if raw.get("s3_out") and ("service" in raw or "spout" in raw):
        raise PachError("s3 output is not supported in spouts or services")
    if "transform" not in raw:
        raise PachError("pipeline must specify a transform")
    if raw.get("reprocess_spec", "") not in ("", *REPROCESS):
        raise PachError("invalid pipeline spec: ReprocessSpec must be one of '{}' or '{}'".format(*REPROCESS))
    if "spout" in raw and raw.get("autoscaling"):
        raise PachError("autoscaling can't be used with spouts (spouts aren't triggered externally)")
    _check_tolerations(raw.get("tolerations", ()))


def check_final(raw: Mapping[str, Any]) -> None:
    """The checks made after defaults are filled in; then those whether localpachd can run the pipeline."""
    name, project = raw["pipeline"]["name"], raw["pipeline"]["project"]["name"]
    if any(fault.rule is NameRule.BEGINNING for fault in pipeline_faults(name, project)):
        raise PachError("pipeline names must start with an alphanumeric character")
    if "input" in raw:
        check_input(raw["input"])
    if "service" in raw and int(raw.get("parallelism_spec", {}).get("constant", 1)) != 1:
        raise PachError("services can only be run with a constant parallelism of 1")
    for field, name in (("pod_spec", "PodSpec"), ("pod_patch", "PodPatch")):
        if raw.get(field) and not _is_json(raw[field]):
            raise PachError(f"malformed {name}")
    for holder in (raw, raw.get("spout", {})):
        if "service" in holder:
            _check_service(holder["service"])
    if "service" in raw and "input" not in raw:
        raise PachError("a service needs an input: without one it gets no job and is never started")
    if "spout" in raw and "service" not in raw["spout"] and "input" in raw:
        raise PachError("spout pipelines (without a service) must not have an input")
    check_resources(raw)
    _check_warmth(raw.get("metadata", {}).get("annotations", {}))
    _check_served(raw)
    if egress_url(raw):
        object_urls.check_target(egress_url(raw))


def egress_url(raw: Mapping[str, Any]) -> str:
    """The URL that a pipeline's output is copied to; "" for none."""
    egress = raw.get("egress", {})
    return str(egress.get("URL") or egress.get("object_storage", {}).get("url", ""))


def check_input(raw: Mapping[str, Any]) -> None:
    """Refuses an input, with defaults filled in, that Pachyderm refuses, with Pachyderm's text."""
    _check_input_names(raw)
    for node in inputs.visit(raw):
        kinds = [kind for kind in ("pfs", "cron", *COMBINATIONS) if kind in node]
        if "pfs" in node:
            _check_pfs(node["pfs"])
        if len(kinds) > 1:
            raise PachError("multiple input types set")
        if "cron" in node:
            _check_cron(node["cron"])
        if not kinds:
            raise PachError("no input set")
        kind = kinds[0]
        if kind in ("join", "group", "union") and any(leaf.get("pfs", {}).get("s3") for leaf in inputs.visit(node)):
            raise PachError(f"S3 inputs in {kind} expressions are not supported")


def _check_name(name: str, project: str) -> None:
    names.parse_ancestry(name)  # Pachyderm first looks for a pipeline of this name, in which `^`, `~` and `.` count
    for fault in pipeline_faults(name, project):
        match fault.rule:
            case NameRule.CHARACTERS:
                raise PachError(f"invalid pipeline name: {names.characters(name)}")
            case NameRule.LENGTH:
                raise PachError(
                    f'pipeline name "{name}" is {fault.excess} characters longer than the {PIPELINE_LIMIT} max'
                )
            case NameRule.KUBERNETES:
                long = kubernetes_name(name, project)
                raise PachError(
                    f'Kubernetes name "{long}" is {fault.excess} characters longer than the {KUBERNETES_LIMIT} max'
                )


def _check_tolerations(tolerations: Any) -> None:
    wrong = [
        f"toleration {place}/{len(tolerations)}: cannot omit key/value comparison operator; specify EQUAL or EXISTS"
        for place, toleration in enumerate(tolerations, start=1)
        if toleration.get("operator", "EMPTY") == "EMPTY"
    ]
    if wrong:
        raise PachError("; ".join(wrong))


def _check_service(service: Mapping[str, Any]) -> None:
    if service["type"] not in _SERVICE_TYPES:
        raise PachError(f"the following service type {service['type']} is not allowed")
    for field in ("internal_port", "external_port"):
        # On a cluster Kubernetes refuses the service, and the pipeline fails.
        if not 1 <= int(service.get(field, 0)) <= _LAST_PORT:
            raise PachError(f"service.{field} must be a port from 1 to {_LAST_PORT}")


def _check_warmth(annotations: Mapping[str, str]) -> None:
    """Pachyderm takes any annotation; these are read by localpachd alone."""
    for fault in warm_annotations.faults(annotations):
        raise InvalidArgument(f'metadata.annotations["{fault.key}"] {fault.why}: {fault.fix}')


def _check_served(raw: Mapping[str, Any]) -> None:
    leaves = list(inputs.leaves(inputs.parse(raw["input"]))) if "input" in raw else []
    unserved = (
        ("spout" in raw and "input" in raw, "inputs of spouts"),
        ("sql_database" in raw.get("egress", {}), "egress to SQL databases"),
        ("determined" in raw, "Determined workspaces"),
        (bool(raw.get("s3_out")), "s3_out"),
        (any(isinstance(leaf, inputs.PfsInput) and leaf.s3 for leaf in leaves), "s3 inputs"),
    )
    for present, what in unserved:
        if present:
            name = raw["pipeline"]["name"]
            raise Unimplemented(f"localpachd does not serve {what} yet: pipeline {name!r} needs a Pachyderm cluster")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _check_input_names(tree: Mapping[str, Any]) -> None:
    for fault in name_faults(tree):
        match fault.rule:
            case InputNameRule.MISSING:
                raise PachError("input must specify a name")
            case InputNameRule.RESERVED:
                raise PachError(f"input cannot be named {fault.name}")
            case InputNameRule.REPEATED:
                raise PachError(f'name "{fault.name}" was used more than once')


def _check_cron(cron: Mapping[str, Any]) -> None:
    with prefixed("error parsing cron-spec", plain=True):
        cron_schedules.parse(cron["spec"])


def _check_pfs(pfs: Mapping[str, Any]) -> None:
    s3 = bool(pfs.get("s3"))
    checks = (
        (not pfs["repo"], "input must specify a repo"),
        (not pfs["branch"], "input must specify a branch"),
        (not s3 and not pfs["glob"], "input must specify a glob"),
        (
            s3 and pfs["glob"] != "/",
            "inputs that set 's3' to 'true' must also set 'glob', to \"/\", as the S3 gateway is only able to expose "
            "data at the commit level",
        ),
        (
            s3 and bool(pfs.get("lazy")),
            "input cannot specify both 's3' and 'lazy', as 's3' requires input data to be accessed via Pachyderm's S3 "
            "gateway rather than the file system",
        ),
        (
            s3 and bool(pfs.get("empty_files")),
            "input cannot specify both 's3' and 'empty_files', as 's3' requires input data to be accessed via "
            "Pachyderm's S3 gateway rather than the file system",
        ),
        (bool(pfs.get("commit")), "input cannot come from a commit; use a branch with head pointing to the commit"),
    )
    for wrong, text in checks:
        if wrong:
            raise PachError(text)
    # Pachyderm reports an invalid pattern only when jobs fail on it, again and again.
    patterns.glob(pfs["glob"])


_PAIRS = (("resource_requests", "resource_limits"), ("sidecar_resource_requests", "sidecar_resource_limits"))


def check_resources(raw: Mapping[str, Any]) -> None:
    """Refuses resources that no cluster could provide. Pachyderm stores anything; there the pipeline then fails, or its
    pods never start."""
    for requests, limits in _PAIRS:
        asked, allowed = _amounts(raw, requests), _amounts(raw, limits)
        for name, amount in asked.items():
            if name in allowed and amount > allowed[name]:
                raise PachError(f"{requests}.{name} is more than {limits}.{name}: no worker could start")
    asked_gpu, allowed_gpu = (raw.get(holder, {}).get("gpu", {}) for holder in _PAIRS[0])
    if int(asked_gpu.get("number", 0)) and asked_gpu != allowed_gpu:
        raise PachError("resource_requests.gpu: set GPUs in resource_limits only")


def _amounts(raw: Mapping[str, Any], holder: str) -> dict[str, Fraction]:
    """The checked amounts in a ResourceSpec."""
    spec = raw.get(holder, {})
    found = {}
    for name in ("memory", "disk"):
        if spec.get(name):
            found[name] = _checked(f"{holder}.{name}", spec[name])
    if spec.get("cpu"):
        found["cpu"] = _checked(f"{holder}.cpu", str(spec["cpu"]))
    gpu = spec.get("gpu", {})
    if int(gpu.get("number", 0)) < 0:
        raise PachError(f"{holder}.gpu.number must not be negative")
    if int(gpu.get("number", 0)) and not gpu.get("type"):
        raise PachError(f'{holder}.gpu.type is missing: name what to count, such as "nvidia.com/gpu"')
    return found


def _checked(place: str, text: str) -> Fraction:
    amount = quantities.parse(text)
    if amount is None:
        raise PachError(
            f'{place}: "{text}" is not a quantity: write a number, followed by {", ".join(quantities.LARGE)}, '
            f"{', '.join(f'{suffix.upper()}i' for suffix in quantities.LARGE)} or m if needed"
        )
    if amount < 0:
        raise PachError(f'{place}: "{text}" must not be negative')
    return amount
