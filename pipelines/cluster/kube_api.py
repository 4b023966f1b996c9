"""The API server of a Kubernetes cluster: the holders of its GPUs, the reasons for which Pachyderm's workers wait, and
the capacity of its nodes and quotas.

A program, run by `kubernetes` as a process of its own: Kubernetes' client takes a second to import, which every other
command would pay for.
"""

import argparse
import json
import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any

import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException
from urllib3.exceptions import HTTPError

from pipelines.cluster import kube_objects

_ANSWERS_WITHIN = 15
"""Time limit of a call in seconds."""

_PAGE = 500
"""Objects in one reply."""

_FORBIDDEN = 403

_ENDED = frozenset({"Succeeded", "Failed"})
_SCALES_UP = "TriggeredScaleUp"
"""The reason of the event by which a cluster's autoscaler says that it adds a node for a pod."""

_PULLING, _PULLED = "Pulling", "Pulled"
"""The reasons of the events by which a node says that it pulls an image, and that it has it."""

_WORKERS = "suite=pachyderm,component=worker"
_SERVERS = "suite=pachyderm,app=pachd"


def holdings(_: str) -> dict[str, Any]:
    """Every node that has GPUs, and every pod that requests any: {"nodes": the fields of GpuMachines, without holders,
    "pods": [{"name", "namespace", "node": "" for none yet, "node_coming": whether the cluster adds one, "pipeline",
    "gpus"}]}."""
    core = client.CoreV1Api()
    nodes = [kube_objects.gpus_of_node(each) for each in _all(core.list_node)]
    pods = [each for each in map(kube_objects.gpus_of_pod, _pods(core)) if each["gpus"]]
    coming = _scaled_for(core) if any(not each["node"] for each in pods) else frozenset()
    for each in pods:
        each["node_coming"] = not each["node"] and (each["namespace"], each["name"]) in coming
    return {"nodes": [each for each in nodes if each["total"]], "pods": pods}


def _pods(core: client.CoreV1Api) -> Iterator[Any]:
    """Every pod of the cluster that holds its resources, or will."""
    return (each for each in _all(core.list_pod_for_all_namespaces) if each.status.phase not in _ENDED)


def _scaled_for(core: client.CoreV1Api) -> frozenset[tuple[str, str]]:
    """The pods, by namespace and name, for which the cluster's autoscaler adds a node."""
    events = _all(core.list_event_for_all_namespaces, field_selector=f"reason={_SCALES_UP}")
    try:
        about = [each.involved_object for each in events if each.reason == _SCALES_UP]
    except ApiException as error:
        if error.status != _FORBIDDEN:
            raise
        return frozenset()  # then such a worker waits like any other
    return frozenset((each.namespace, each.name) for each in about)


def troubles(namespace: str) -> dict[str, list[str]]:
    """The reasons, in Kubernetes' own words, for which workers of pipelines (as project/name) do not run."""
    core = client.CoreV1Api()
    names: dict[tuple[str, str], str] = {}
    found: dict[str, list[str]] = {}
    for controller in _all(core.list_namespaced_replication_controller, namespace=namespace, label_selector=_WORKERS):
        if kube_objects.lacks_workers(controller):
            names["ReplicationController", controller.metadata.name] = kube_objects.pipeline_of(controller)
    for pod in _all(core.list_namespaced_pod, namespace=namespace, label_selector=_WORKERS):
        if kube_objects.healthy(pod):
            continue
        names["Pod", pod.metadata.name] = kube_objects.pipeline_of(pod)
        found.setdefault(kube_objects.pipeline_of(pod), []).extend(kube_objects.waiting(pod))
    for event in _all(core.list_namespaced_event, namespace=namespace, field_selector="type=Warning"):
        about = names.get((event.involved_object.kind, event.involved_object.name))
        if about is not None and event.message and kube_objects.is_failure(event):
            found.setdefault(about, []).append(f"{event.reason}: {event.message.strip()}")
    silent = {name: pipeline for (kind, name), pipeline in names.items() if kind == "Pod" and not found.get(pipeline)}
    if silent:
        for name, said in _pulls(core, namespace).items():
            if name in silent:
                found.setdefault(silent[name], []).append(said)
    return {name: kube_objects.distinct(said) for name, said in found.items() if said}


def _pulls(core: client.CoreV1Api, namespace: str) -> dict[str, str]:
    """The pods whose node is pulling an image, with its words."""
    found: dict[str, dict[str, str]] = {}
    for reason in (_PULLING, _PULLED):
        events = _all(core.list_namespaced_event, namespace=namespace, field_selector=f"reason={reason}")
        of_it = (each for each in events if each.reason == reason)
        found[reason] = {each.involved_object.name: f"{reason}: {(each.message or '').strip()}" for each in of_it}
    return {name: said for name, said in found[_PULLING].items() if name not in found[_PULLED]}


def capacity(namespace: str) -> dict[str, Any]:
    """The capacity of schedulable nodes, and the quotas of a namespace, in Kubernetes' quantities: {"namespace",
    "pachyderm": whether one runs there, "nodes": the fields of ClusterNodes, "quotas": those of ResourceQuotas, "pods":
    those on nodes, [{"node", "pipeline", "containers", "initContainers"}], None if they may not be listed}."""
    core = client.CoreV1Api()
    nodes = [each for each in _all(core.list_node) if kube_objects.schedulable(each)]
    servers = _all(core.list_namespaced_pod, namespace=namespace, label_selector=_SERVERS)
    quotas = _all(core.list_namespaced_resource_quota, namespace=namespace)
    return {
        "namespace": namespace,
        "pachyderm": any(True for _ in servers),
        "nodes": [kube_objects.offer(each) for each in nodes],
        "quotas": [
            {"name": each.metadata.name, "hard": each.status.hard or {}, "used": each.status.used or {}}
            for each in quotas
        ],
        "pods": _requests(core),
    }


def _requests(core: client.CoreV1Api) -> list[dict[str, Any]] | None:
    try:
        return [kube_objects.requests_of(each) for each in _pods(core) if each.spec.node_name]
    except ApiException as error:
        if error.status != _FORBIDDEN:
            raise
        return None


def main() -> int:
    """Prints the answer as JSON; if the cluster gives none, one line on stderr and exit status 1."""
    parser = argparse.ArgumentParser(prog="pipelines.cluster.kube_api", description=__doc__)
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
