"""The parts of a worker's pod that a specification decides: its secrets, and how pod_spec and pod_patch change it.

Follows Pachyderm 2.7's worker_rc.go.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pipelines.specifications import json_patches
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.findings import Flaw, did_you_mean
from speclang.merge_patches import merge

_CONTAINERS = ("user", "storage")
_RESOURCES = {"cpu": "cpu", "memory": "memory", "disk": "ephemeral-storage"}
_SERVERS = ("env", "volumes", "volumeMounts")
"""Lists that the server fills, in an order of its own."""

_BY_CONFIGURATION = "securityContext"
"""A member that pods have only with some configurations of the server."""

_POD_FIELDS = frozenset(
    re.findall(
        r"\w+",
        """
    activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig dnsPolicy
    enableServiceLinks ephemeralContainers hostAliases hostIPC hostNetwork hostPID hostUsers hostname
    imagePullSecrets initContainers nodeName nodeSelector os overhead preemptionPolicy priority
    priorityClassName readinessGates resourceClaims resources restartPolicy runtimeClassName schedulerName
    schedulingGates securityContext serviceAccount serviceAccountName setHostnameAsFQDN shareProcessNamespace
    subdomain terminationGracePeriodSeconds tolerations topologySpreadConstraints volumes
    """,
    )
)
_SHAPES: Mapping[str, tuple[type, str]] = {
    **dict.fromkeys(("containers", "initContainers", "tolerations", "volumes", "imagePullSecrets"), (list, "a list")),
    **dict.fromkeys(("nodeSelector", "affinity", "securityContext"), (dict, "an object")),
    **dict.fromkeys(("priorityClassName", "schedulerName", "nodeName", "runtimeClassName"), (str, "text")),
}
_TOLERATIONS = {"operator": ("Exists", "Equal"), "effect": ("NoSchedule", "PreferNoSchedule", "NoExecute")}


def check(draft: SpecDraft) -> list[Flaw]:
    """Secrets that are mounted more than once; patches that cannot be read, do not apply, or leave a pod that could not
    work."""
    return [*_check_secrets(draft), *_patched(draft)[1]]


def patched_pod(draft: SpecDraft) -> Mapping[str, Any]:
    """The pod's spec after pod_spec and pod_patch. A patch that does not apply is skipped."""
    pod = _patched(draft)[0]
    return pod if isinstance(pod, Mapping) else {}


def _patched(draft: SpecDraft) -> tuple[Any, list[Flaw]]:
    pod: Any = base_pod(draft)
    flaws: list[Flaw] = []
    ways: Mapping[str, Callable[[Any, Any], Any]] = {"pod_spec": _merged, "pod_patch": json_patches.apply}
    for name, apply in ways.items():
        text = draft.get(name)
        if not text:
            continue
        try:
            patch = json.loads(text)
            unchecked = list(_unforeseeable(name, patch)) if name == "pod_patch" else []
            flaws += unchecked
            pod = apply(pod, _without(patch, unchecked))
        except ValueError as error:
            flaws.append(_flaw(name, f"does not parse: {error}", "write JSON, with its quotes escaped"))
        except json_patches.PatchError as error:
            why = f"does not apply to the pod that Pachyderm makes: {error}"
            flaws.append(_flaw(name, why, _way_out(str(error))))
        else:
            flaws += _check_pod(name, pod, patch)
    return pod, flaws


def base_pod(draft: SpecDraft) -> dict[str, Any]:
    """The pod's spec before pod_spec and pod_patch: containers with their resources, selectors and tolerations."""
    limits, requests = (_list(draft, f"resource_{kind}") for kind in ("limits", "requests"))
    shared = {name: amount for name, amount in requests.items() if name in _RESOURCES.values()}
    init: dict[str, Any] = {"name": "init", "resources": {"requests": {"cpu": "0", "memory": "64M", **shared}}}
    user: dict[str, Any] = {
        "name": "user",
        "image": draft.get("transform", "image"),
        "resources": {"requests": requests},
    }
    storage: dict[str, Any] = {"name": "storage", "resources": {"requests": {"cpu": "0", "memory": "64M"}}}
    if draft.get("resource_limits") is not None:
        # The init container gets the user's limits, GPUs too; Kubernetes does not add the two up.
        init["resources"]["limits"], user["resources"]["limits"] = dict(limits), dict(limits)
    for kind in ("limits", "requests"):
        if draft.get(f"sidecar_resource_{kind}") is not None:
            storage["resources"][kind] = _list(draft, f"sidecar_resource_{kind}")
    for each in (init, user, storage):
        each |= {"command": ["…"], "env": [], "volumeMounts": [], "imagePullPolicy": "IfNotPresent"}
    pod: dict[str, Any] = {
        "initContainers": [init],
        "containers": [user, storage],
        "serviceAccountName": "pachyderm-worker",
        "automountServiceAccountToken": True,
        "restartPolicy": "Always",
        "volumes": [],
        "terminationGracePeriodSeconds": 0,
    }
    # Go leaves out what is empty, so a patch cannot add to it.
    for name, value in (
        ("nodeSelector", draft.get("scheduling_spec", "node_selector")),
        ("priorityClassName", draft.get("scheduling_spec", "priority_class_name")),
        ("tolerations", [_toleration(each) for each in draft.get("tolerations", default=())]),
        ("imagePullSecrets", draft.get("transform", "image_pull_secrets")),
    ):
        if value:
            pod[name] = value
    return pod


def _toleration(given: Mapping[str, Any]) -> dict[str, Any]:
    """A toleration of a specification in Kubernetes' spelling."""
    spelt: dict[str, Any] = {name: given[name] for name in ("key", "value") if given.get(name)}
    for name, known in _TOLERATIONS.items():
        choices = {each.upper(): each for each in known}
        chosen = choices.get(str(given.get(name, "")).replace("_", ""))
        spelt |= {name: chosen} if chosen else {}
    return spelt


def _list(draft: SpecDraft, field: str) -> dict[str, str]:
    """A ResourceSpec as Kubernetes' resource list."""
    found = {to: str(draft.get(field, name)) for name, to in _RESOURCES.items() if draft.get(field, name)}
    if draft.get(field, "gpu") is not None:
        found[str(draft.get(field, "gpu", "type", default=""))] = str(int(draft.number(field, "gpu", "number")))
    return found


def _merged(pod: Any, patch: Any) -> Any:
    if not isinstance(patch, Mapping):
        raise json_patches.PatchError("it is not a JSON object")
    return merge(pod, patch)


def _unforeseeable(name: str, patch: Any) -> Iterator[Flaw]:
    """Operations that depend on the server's configuration."""
    for place, operation in enumerate(patch if isinstance(patch, list) else ()):
        path = operation.get("path") if isinstance(operation, dict) else None
        parts = path.split("/") if isinstance(path, str) else []
        at = next((at for at, part in enumerate(parts) if part in _SERVERS), len(parts))
        if any(part.isdigit() for part in parts[at:]) or _BY_CONFIGURATION in parts[:-1]:
            why = f"unchecked: whether operation {place} on {path} applies depends on the server's configuration"
            yield Flaw.note("pod", (name, place), why)


def _without(patch: Any, unchecked: Sequence[Flaw]) -> Any:
    places = {flaw.field[-1] for flaw in unchecked}
    return [each for place, each in enumerate(patch) if place not in places] if places else patch


def _way_out(error: str) -> str:
    if "there is no /tolerations" in error or "there is no /nodeSelector" in error:
        return "use the fields tolerations and scheduling_spec.node_selector, or add the whole list or object"
    return "a pod has initContainers/0 (init), containers/0 (user) and containers/1 (storage)"


def _check_pod(name: str, pod: Any, patch: Any) -> Iterator[Flaw]:
    if not isinstance(pod, Mapping):
        yield _flaw(name, "leaves something that is not a pod", "patch parts of the pod, not all of it")
        return
    containers = pod.get("containers")
    named = (
        {each.get("name") for each in containers if isinstance(each, Mapping)} if isinstance(containers, list) else ()
    )
    gone = [each for each in _CONTAINERS if each not in named]
    if gone:
        why = f"removes the container {' and '.join(gone)}: it replaces the whole list, and the pipeline could not run"
        yield _flaw(name, why, "change one container with a pod_patch, such as /containers/0/resources")
    for field, value in pod.items():
        kind, wanted = _SHAPES.get(field, (object, ""))
        if not isinstance(value, kind):
            yield _flaw(name, f"makes {field} something other than {wanted}", f"write {wanted}")
        elif field not in _POD_FIELDS:
            why = f"{field} is not a field of a pod: Kubernetes would silently drop it"
            yield _flaw(name, why, did_you_mean(field, _POD_FIELDS, "remove it"))
    if "oleration" in json.dumps(patch):
        yield from _check_tolerations(name, pod.get("tolerations"))


def _check_tolerations(name: str, tolerations: Any) -> Iterator[Flaw]:
    """Tolerations in a pod, where the spelling is Kubernetes'."""
    for toleration in tolerations if isinstance(tolerations, list) else ():
        for field, known in _TOLERATIONS.items():
            value = toleration.get(field) if isinstance(toleration, Mapping) else None
            if value is not None and value not in known:
                spelt = {each.lower(): each for each in known}.get(str(value).replace("_", "").lower())
                fix = (
                    f"write {spelt}: in a pod the spelling is Kubernetes'"
                    if spelt
                    else f"write one of {', '.join(known)}"
                )
                yield _flaw(name, f"{value} is not a valid {field} of a toleration", fix)


def _flaw(name: str, why: str, fix: str) -> Flaw:
    return Flaw.error("pod", (name,), why, fix)


def _check_secrets(draft: SpecDraft) -> Iterator[Flaw]:
    mounted: set[str] = set()
    for place, secret in enumerate(draft.get("transform", "secrets", default=())):
        if not secret.get("mount_path"):
            continue
        name = str(secret.get("name", ""))
        if name in mounted:
            why = (
                f"mounts the secret {name} again: on a cluster the pipeline fails, since Pachyderm names a volume "
                "after its secret and Kubernetes refuses two of one name"
            )
            fix = "mount it once: the directory has a file for each of its keys"
            yield Flaw.warning("secret", ("transform", "secrets", place, "mount_path"), why, fix)
        mounted.add(name)
