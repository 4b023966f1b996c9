"""What a pipeline specification must satisfy, in Pachyderm's order and words. Changes nothing, reads nothing else.

Specifications are CreatePipelineRequests as protojson mappings with snake_case names.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from localpachd.errors import PachError, Unimplemented
from localpachd.pps import inputs

NAME_LIMIT = 51
KUBERNETES_LIMIT = 63
REPROCESS = ("until_success", "every_job")
_NAME = re.compile(r"[a-zA-Z0-9_-]+")
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
    """The checks made with every default in place, and then whether localpachd can run such a pipeline."""
    if not raw["pipeline"]["name"][0].isalnum():
        raise PachError("pipeline names must start with an alphanumeric character")
    if "input" in raw:
        inputs.validate(raw["input"])
    if "service" in raw and int(raw.get("parallelism_spec", {}).get("constant", 1)) != 1:
        raise PachError("services can only be run with a constant parallelism of 1")
    for field, name in (("pod_spec", "PodSpec"), ("pod_patch", "PodPatch")):
        if raw.get(field) and not _is_json(raw[field]):
            raise PachError(f"malformed {name}")
    if "service" in raw and raw["service"]["type"] not in _SERVICE_TYPES:
        raise PachError(f"the following service type {raw['service']['type']} is not allowed")
    if "spout" in raw and "service" not in raw["spout"] and "input" in raw:
        raise PachError("spout pipelines (without a service) must not have an input")
    _check_served(raw)


def check_secrets(raw: Mapping[str, Any]) -> None:
    """Refuses what a transform wants of secrets. localpachd keeps none, so every secret is a missing one."""
    for secret in raw.get("transform", {}).get("secrets", ()):
        if secret.get("env_var") and not secret.get("key"):
            raise PachError(f"secret {secret.get('name', '')} has env_var set but is missing key")
        raise PachError(f"missing Kubernetes secret {secret.get('name', '')}")


def _check_name(name: str, project: str) -> None:
    if not _NAME.fullmatch(name):
        raise PachError(
            f"invalid pipeline name: name ({name}) invalid: only alphanumeric characters, underscores, and dashes "
            "are allowed"
        )
    if len(name) > NAME_LIMIT:
        raise PachError(
            f'pipeline name "{name}" is {len(name) - NAME_LIMIT} characters longer than the {NAME_LIMIT} max'
        )
    # The name that the pipeline's replication controller would have on a cluster.
    kubernetes = f"{project}-{name}-v99".replace("_", "-").lower()
    if len(kubernetes) > KUBERNETES_LIMIT:
        excess = len(kubernetes) - KUBERNETES_LIMIT
        raise PachError(f'Kubernetes name "{kubernetes}" is {excess} characters longer than the {KUBERNETES_LIMIT} max')


def _check_tolerations(tolerations: Any) -> None:
    wrong = [
        f"toleration {place}/{len(tolerations)}: cannot omit key/value comparison operator; specify EQUAL or EXISTS"
        for place, toleration in enumerate(tolerations, start=1)
        if toleration.get("operator", "EMPTY") == "EMPTY"
    ]
    if wrong:
        raise PachError("; ".join(wrong))


def _check_served(raw: Mapping[str, Any]) -> None:
    leaves = list(inputs.leaves(inputs.parse(raw["input"]))) if "input" in raw else []
    unserved = (
        ("spout" in raw, "spouts"),
        ("service" in raw, "services"),
        ("egress" in raw, "egress"),
        ("determined" in raw, "Determined workspaces"),
        (bool(raw.get("s3_out")), "s3_out"),
        (any(isinstance(leaf, inputs.PfsInput) and leaf.s3 for leaf in leaves), "s3 inputs"),
        (any(isinstance(leaf, inputs.CronInput) for leaf in leaves), "cron inputs"),
    )
    for present, what in unserved:
        if present:
            name = raw["pipeline"]["name"]
            raise Unimplemented(f"localpachd does not serve {what} yet: pipeline {name!r} needs a Pachyderm cluster")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
