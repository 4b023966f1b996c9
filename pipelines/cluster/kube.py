"""The API server of a Kubernetes cluster: the holders of its GPUs, the reasons for which Pachyderm's workers wait, and
the capacity of its nodes and quotas.

A program, run by `kubernetes` as a process of its own: Kubernetes' client takes a second to import, which every other
command would pay for.
"""

import argparse
import json
import logging
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException
from urllib3.exceptions import HTTPError

_ANSWERS_WITHIN = 15
"""Time limit of a call in seconds."""

_PAGE = 500
"""Objects in one reply."""

_ENDED = frozenset({"Succeeded", "Failed"})
_WORKERS = "suite=pachyderm,component=worker"
_SERVERS = "suite=pachyderm,app=pachd"
_PRODUCTS = ("nvidia.com/gpu.product", "aliyun.accelerator/nvidia_name", "cloud.google.com/gke-accelerator")
"""Labels of nodes that name the kind of their GPUs."""


def holdings(_: str) -> dict[str, Any]:
    """Every node that has GPUs, and every pod that holds any: {"nodes": [{"name", "ready", "product", "gpus"}],
    "pods": [{"name", "namespace", "node", "pipeline", "gpus"}]}."""
    core = client.CoreV1Api()
    nodes = [_node(each) for each in _all(core.list_node)]
    pods = [_pod(each) for each in _all(core.list_pod_for_all_namespaces) if each.status.phase not in _ENDED]
    return {"nodes": [each for each in nodes if each["gpus"]], "pods": [each for each in pods if each["gpus"]]}


def troubles(namespace: str) -> dict[str, list[str]]:
    """The reasons, in Kubernetes' own words, for which workers of pipelines (as project/name) do not run."""
    core = client.CoreV1Api()
    names: dict[tuple[str, str], str] = {}
    found: dict[str, list[str]] = {}
    for controller in _all(core.list_namespaced_replication_controller, namespace=namespace, label_selector=_WORKERS):
        if _lacks_workers(controller):
            names["ReplicationController", controller.metadata.name] = _pipeline(controller)
    for pod in _all(core.list_namespaced_pod, namespace=namespace, label_selector=_WORKERS):
        if _healthy(pod):
            continue
        names["Pod", pod.metadata.name] = _pipeline(pod)
        found.setdefault(_pipeline(pod), []).extend(_waiting(pod))
    for event in _all(core.list_namespaced_event, namespace=namespace, field_selector="type=Warning"):
        about = names.get((event.involved_object.kind, event.involved_object.name))
        if about is not None and event.message:
            found.setdefault(about, []).append(f"{event.reason}: {event.message.strip()}")
    return {name: list(dict.fromkeys(said)) for name, said in found.items() if said}


def capacity(namespace: str) -> dict[str, Any]:
    """The capacity of schedulable nodes, and the quotas of a namespace, in Kubernetes' quantities:
    {"namespace", "pachyderm": whether one runs there, "nodes": [{"name", "labels", "taints": [{"key", "value",
    "effect"}], "allocatable", "images"}], "quotas": [{"name", "hard", "used"}]}."""
    core = client.CoreV1Api()
    nodes = [each for each in _all(core.list_node) if _ready(each) and not (each.spec and each.spec.unschedulable)]
    servers = _all(core.list_namespaced_pod, namespace=namespace, label_selector=_SERVERS)
    quotas = _all(core.list_namespaced_resource_quota, namespace=namespace)
    return {
        "namespace": namespace,
        "pachyderm": any(True for _ in servers),
        "nodes": [_offer(each) for each in nodes],
        "quotas": [
            {"name": each.metadata.name, "hard": each.status.hard or {}, "used": each.status.used or {}}
            for each in quotas
        ],
    }


def main() -> int:
    """Prints the answer as JSON; if the cluster gives none, one line on stderr and exit status 1."""
    parser = argparse.ArgumentParser(prog="pipelines.cluster.kube", description=__doc__)
    parser.add_argument("question", choices=("holdings", "troubles", "capacity"))
    parser.add_argument("--namespace", default="", help="the namespace of Pachyderm's workers [default: the context's]")
    given = parser.parse_args()
    try:
        namespace = _configure(given.namespace)
        answer = {"holdings": holdings, "troubles": troubles, "capacity": capacity}[given.question](namespace)
    except ApiException as error:
        print(_refusal(error), file=sys.stderr)
    except (ConfigException, yaml.YAMLError, OSError) as error:
        print(f"no Kubernetes cluster is configured: {_line(error)}; kubectl must work here", file=sys.stderr)
    except HTTPError as error:
        place = client.Configuration.get_default_copy().host
        print(f"the Kubernetes cluster at {place} does not answer: {_line(error)}", file=sys.stderr)
    else:
        json.dump(answer, sys.stdout)
        return 0
    return 1


class _Complaints(logging.Handler):
    """Failures of the login program, which Kubernetes' client only logs: it would continue without credentials, and the
    refusal would not name the cause."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


def _configure(namespace: str) -> str:
    """Finds the cluster as kubectl does, or as a pod within it; returns the namespace, for "" the context's."""
    logging.getLogger().addHandler(complaints := _Complaints())
    try:
        try:
            config.load_kube_config()
            _, active = config.list_kube_config_contexts()
        except (TypeError, KeyError, AttributeError) as error:
            raise ConfigException(f"kubectl's configuration is invalid ({error})") from error
        if complaints.said:
            raise ConfigException(complaints.said[0])
        namespace = namespace or active["context"].get("namespace", "")
    except ConfigException as error:
        try:
            config.load_incluster_config()
        except ConfigException:
            raise error from None
    settings = client.Configuration.get_default_copy()
    settings.retries = False
    client.Configuration.set_default(settings)
    return namespace or "default"


def _all(call: Callable[..., Any], **arguments: Any) -> Iterator[Any]:
    """Every object of a list, page by page."""
    token = ""
    while True:
        page = call(limit=_PAGE, _continue=token or None, _request_timeout=_ANSWERS_WITHIN, **arguments)
        yield from page.items
        token = page.metadata._continue
        if not token:
            return


def _node(node: Any) -> dict[str, Any]:
    labels = node.metadata.labels or {}
    return {
        "name": node.metadata.name,
        "ready": _ready(node),
        "product": next((labels[name] for name in _PRODUCTS if name in labels), ""),
        "gpus": _gpus(node.status.allocatable),
    }


def _ready(node: Any) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in node.status.conditions or ())


def _offer(node: Any) -> dict[str, Any]:
    taints = (node.spec.taints if node.spec else None) or ()
    return {
        "name": node.metadata.name,
        "labels": node.metadata.labels or {},
        "taints": [{"key": each.key, "value": each.value or "", "effect": each.effect} for each in taints],
        "allocatable": node.status.allocatable or {},
        "images": [name for each in node.status.images or () for name in each.names or ()],
    }


def _pod(pod: Any) -> dict[str, Any]:
    return {
        "name": pod.metadata.name,
        "namespace": pod.metadata.namespace,
        "node": pod.spec.node_name or "",
        "pipeline": _pipeline(pod),
        "gpus": max(
            sum(_wanted(pod.spec.containers)),
            max(_wanted(pod.spec.init_containers or ()), default=0),  # these run before the others
        ),
    }


def _wanted(containers: Iterable[Any]) -> list[int]:
    return [_gpus(each.resources.limits if each.resources else None) for each in containers]


def _gpus(quantities: Mapping[str, str] | None) -> int:
    """The number of GPUs, or slices of GPUs, among some resources."""
    return sum(
        int(quantity)
        for name, quantity in (quantities or {}).items()
        if name.endswith("/gpu") or name.startswith("nvidia.com/mig-")
    )


def _pipeline(thing: Any) -> str:
    """The pipeline of a worker, as project/name; "" for any other pod."""
    labels = thing.metadata.labels or {}
    name = labels.get("pipelineName", "")
    return f"{labels.get('pipelineProject', 'default')}/{name}" if name else ""


def _lacks_workers(controller: Any) -> bool:
    """Whether events of a controller are current: Kubernetes keeps them for an hour."""
    return (controller.status.ready_replicas or 0) < (controller.spec.replicas or 0)


def _healthy(pod: Any) -> bool:
    return pod.status.phase == "Running" and all(each.ready for each in pod.status.container_statuses or ())


def _waiting(pod: Any) -> Iterator[str]:
    for each in pod.status.conditions or ():
        if each.type == "PodScheduled" and each.status == "False" and each.message:
            yield f"{each.reason}: {each.message.strip()}"
    for each in (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ())):
        waiting = each.state.waiting if each.state else None
        if waiting is not None and waiting.message:
            yield f"{waiting.reason}: {waiting.message.strip()}"


def _refusal(error: ApiException) -> str:
    try:
        said = json.loads(error.body)["message"]
    except (ValueError, KeyError, TypeError):
        said = error.reason
    return f"the Kubernetes cluster refuses the request: {_line(said)}"


def _line(what: object) -> str:
    return " ".join(str(what).split())


if __name__ == "__main__":
    sys.exit(main())
