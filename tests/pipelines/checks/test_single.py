"""The checks of one specification: for each, one that is wrong in just that way, and one that is not."""

import json
import re
from typing import Any

import pytest

from pipelines.specifications.findings import FlawLevel
from speclang.field_paths import dotted
from speclang.warm_annotations import MEMORY, SECONDS

E, W, N = FlawLevel.ERROR, FlawLevel.WARNING, FlawLevel.NOTE
GPU = {"gpu": {"type": "nvidia.com/gpu", "number": 1}}
REQUESTS = {"cpu": 1, "memory": "1Gi"}
SPECS, DRIVER = "k8s.aliyun.com/eci-use-specs", "k8s.aliyun.com/eci-gpu-driver-version"


def gpus(number: int) -> dict[str, Any]:
    return {"gpu": {"type": "nvidia.com/gpu", "number": number}}


def eci(specs: str, driver: str | None = "tesla=550", limits: Any = GPU, **fields: Any) -> dict[str, Any]:
    annotations = {SPECS: specs} | ({DRIVER: driver} if driver else {})
    return {
        "metadata": {"annotations": annotations},
        "resource_limits": limits,
        "resource_requests": REQUESTS,
        "transform": {"image": "r.io/lookalike-rapids:1", "cmd": ["true"]},
        **fields,
    }


def selected(label: str, value: str, image: str = "lookalike-rapids:1") -> dict[str, Any]:
    return {
        "scheduling_spec": {"node_selector": {label: value}},
        "resource_limits": GPU,
        "resource_requests": REQUESTS,
        "transform": {"image": image, "cmd": ["true"]},
    }


def runs(image: str, *command: str) -> dict[str, Any]:
    return {"transform": {"image": image, "cmd": list(command)}}


def warm(annotations: dict[str, str], **transform: Any) -> dict[str, Any]:
    inner = {"image": "shell:1", "cmd": ["sh"], "datum_batching": True, **transform}
    return {"metadata": {"annotations": annotations}, "transform": inner}


def as_user(user: str, image: str = "shell:1") -> dict[str, Any]:
    return {"transform": {"image": image, "cmd": ["sh"], "user": user}}


def mounting(*secrets: tuple[str, str]) -> dict[str, Any]:
    mounts = [{"name": name, "mount_path": path} for name, path in secrets]
    return {"transform": {"image": "shell:1", "cmd": ["sh"], "secrets": mounts}}


def service(**fields: Any) -> dict[str, Any]:
    return {"service": {"internal_port": 80, "external_port": 30080, **fields}, **serving()}


NEAR, FAR = {"internal_port": 80, "external_port": 80}, {"internal_port": 80, "external_port": 30080}


def serving(**fields: Any) -> dict[str, Any]:
    return {"input": {"pfs": {"repo": "images", "glob": "/", **fields}}}


def patch(*operations: Any) -> str:
    return json.dumps(list(operations))


OUR_IMAGE = "r.io/lookalike-cpu:1"
TOLERATION = {"key": "a", "operator": "Exists"}
CASES: list[tuple[FlawLevel, str, str, str, dict[str, Any], dict[str, Any]]] = [
    # fields
    (E, "transfrom", "does not know this field", 'mean "transform"', {"transfrom": {}}, {}),
    (E, "transform.datum_baching", "drop", 'mean "datum_batching"',
     {"transform": {"image": "a:1", "datum_baching": True}}, {"transform": {"image": "a:1", "datumBatching": True}}),
    (E, "nodeSelector", "does not know", "scheduling_spec.node_selector", {"nodeSelector": {}}, {"schedulingSpec": {}}),
    (E, "dropped_in", "does not know", "remove it", {"dropped_in": 1}, {"description": "d"}),
    (E, "update", "not for specifications", "remove it", {"update": True}, {}),
    (E, "maximum_expected_uptime", "only Pachyderm 2.8", "pachctl", {"maximum_expected_uptime": "1s"}, {}),
    (E, "autoscaling", 'not "yes"', "write true", {"autoscaling": "yes"}, {"autoscaling": True}),
    (E, "datum_tries", "a whole number, not 1.5", "", {"datum_tries": 1.5}, {"datum_tries": "3"}),
    (E, "transform.cmd", 'a list in square brackets, not "true"', '["true"]',
     {"transform": {"image": "a:1", "cmd": "true"}}, {"transform": {"image": "a:1", "cmd": ["true"]}}),
    (E, "transform.env.K", "text in double quotes, not 3", 'write "3"',
     {"transform": {"image": "a:1", "env": {"K": 3}}}, {"transform": {"image": "a:1", "env": {"K": "3"}}}),
    (E, "transform", 'an object in braces, not "x"', "", {"transform": "x"}, {}),
    (E, "datum_timeout", "time with its unit", 'write "300s"', {"datum_timeout": 300}, {"datum_timeout": "300s"}),
    (E, "parallelism_spec.constant", "a whole number, not -1", "",
     {"parallelism_spec": {"constant": -1}}, {"parallelism_spec": {"constant": 2}}),
    (E, "datumTries", "given twice", "keep one", {"datum_tries": 1, "datumTries": 1}, {"datumTries": 1}),
    (E, "egress.sql_database", "excludes another field", "one of them",
     {"egress": {"object_storage": {"url": "s3://b"}, "sql_database": {}}},
     {"egress": {"object_storage": {"url": "s3://b"}}}),
    (E, "transform.cmd[1]", "not null", "", {"transform": {"image": "a:1", "cmd": ["sh", None]}},
     {"transform": {"image": "a:1", "cmd": ["sh"], "user": None}}),
    # enums
    (E, "tolerations[0].operator", "Kubernetes' spelling", '"EXISTS"',
     {"tolerations": [{"key": "a", "operator": "Exists"}]}, {"tolerations": [{"key": "a", "operator": "EXISTS"}]}),
    (E, "tolerations[0].effect", "Kubernetes' spelling", '"NO_SCHEDULE"',
     {"tolerations": [{"operator": "EQUAL", "effect": "NoSchedule"}]},
     {"tolerations": [{"operator": "EQUAL", "effect": "NO_SCHEDULE"}]}),
    (E, "tolerations[0].effect", '"NO_SCEDULE", which is not a valid value', 'mean "NO_SCHEDULE"',
     {"tolerations": [{"operator": 2, "effect": "NO_SCEDULE"}]}, {"tolerations": [{"operator": 2, "effect": 1}]}),
    (E, "tolerations[0]", "has no operator", '"EQUAL"', {"tolerations": [{"key": "a"}]}, {"tolerations": []}),
    # warm processes
    (E, f'metadata.annotations["{SECONDS}"]', '"10m" is not a whole number of seconds from 0 to 86400', '"600"',
     warm({SECONDS: "10m"}), warm({SECONDS: "600"})),
    (E, f'metadata.annotations["{MEMORY}"]', '"1GB" is not a valid quantity of memory above 0', '"1Gi"',
     warm({SECONDS: "600", MEMORY: "1GB"}), warm({SECONDS: "600", MEMORY: "1G"})),
    (E, f'metadata.annotations["{MEMORY}"]', f"has no effect without {SECONDS}", f"add {SECONDS}",
     warm({MEMORY: "1Gi"}), warm({SECONDS: "0", MEMORY: "1Gi"})),
    (W, f'metadata.annotations["{SECONDS}"]', "has no effect: only processes that ask", '"datum_batching": true',
     warm({SECONDS: "600"}, datum_batching=False), warm({SECONDS: "600"})),
    # names
    (E, "pipeline", "has no name", '"name"', {"pipeline": {}}, {}),
    (E, "pipeline.name", "1 characters longer than the 51", "shorten",
     {"pipeline": {"name": "p" * 52}}, {"pipeline": {"name": "p" * 51}}),
    (E, "pipeline.name", "not a valid name of a pipeline", "letters", {"pipeline": {"name": "a.b"}},
     {"pipeline": {"name": "a_b"}}),
    (E, "pipeline.name", "begins with -", "begin with", {"pipeline": {"name": "-a"}}, {"pipeline": {"name": "1a"}}),
    (E, "pipeline.project.name", "1 characters longer than the 51", "shorten",
     {"pipeline": {"name": "p", "project": {"name": "q" * 52}}},
     {"pipeline": {"name": "p", "project": {"name": "q" * 51}}}),
    (E, "pipeline.name", "Kubernetes name .* 1 characters too long", "shorten",
     {"pipeline": {"name": "p" * 30, "project": {"name": "q" * 29}}},
     {"pipeline": {"name": "p" * 30, "project": {"name": "q" * 28}}}),
    # inputs
    (E, "input", "is not an input", "one of pfs", {"input": {}}, {"input": {"cron": {"name": "t", "spec": "@daily"}}}),
    (E, "input.pfs", "no glob", '"/\\*"', {"input": {"pfs": {"repo": "images"}}}, {}),
    (E, "input.pfs", "does not name a repo", '"repo"', {"input": {"pfs": {"glob": "/"}}}, {}),
    (E, "input.pfs.glob", "a \\[ is not closed", "correct",
     {"input": {"pfs": {"repo": "images", "glob": "/[a"}}}, {"input": {"pfs": {"repo": "images", "glob": "/[ab]*"}}}),
    (W, "input.pfs.glob", "group is not closed", "close it",
     {"input": {"pfs": {"repo": "images", "glob": "/(a|b"}}}, {"input": {"pfs": {"repo": "images", "glob": "/(a|b)"}}}),
    (E, "input.pfs.commit", "follows a branch", "branch",
     {"input": {"pfs": {"repo": "images", "glob": "/", "commit": "a"}}}, {}),
    (E, "input.cross[1].pfs", "called images, like another input", '"images2"',
     {"input": {"cross": [{"pfs": {"repo": "images", "glob": "/"}}, {"pfs": {"repo": "images", "glob": "/*"}}]}},
     {"input": {"cross": [{"pfs": {"repo": "images", "glob": "/"}},
                          {"pfs": {"repo": "images", "name": "all", "glob": "/*"}}]}}),
    (E, "input.group[1].pfs", "called images, like another input", '"images2"',
     {"input": {"group": [{"pfs": {"repo": "images", "glob": "/(*)", "group_by": "$1"}},
                          {"pfs": {"repo": "images", "glob": "/(*)", "group_by": "$1"}}]}},
     {"input": {"union": [{"pfs": {"repo": "images", "glob": "/"}}, {"pfs": {"repo": "images", "glob": "/*"}}]}}),
    (E, "input.cron", "has no name", '"name"', {"input": {"cron": {"spec": "@daily"}}},
     {"input": {"cron": {"name": "t", "spec": "@daily"}}}),
    (E, "input.pfs", "cannot be called out", '"name"',
     {"input": {"pfs": {"repo": "images", "name": "out", "glob": "/"}}}, {}),
    (E, "input", "pfs and cross at once", "nest",
     {"input": {"pfs": {"repo": "images", "glob": "/"}, "cross": [{"pfs": {"repo": "queries", "glob": "/"}}]}}, {}),
    (W, "input.join[0].pfs", "no join_on", '"join_on"',
     {"input": {"join": [{"pfs": {"repo": "images", "glob": "/(*)"}}]}},
     {"input": {"join": [{"pfs": {"repo": "images", "glob": "/(*)", "join_on": "$1"}}]}}),
    (E, "input.join[0].pfs.join_on", "group 2 of a glob with 1", "parentheses",
     {"input": {"join": [{"pfs": {"repo": "images", "glob": "/(*)", "join_on": "$2"}}]}},
     {"input": {"join": [{"pfs": {"repo": "images", "glob": "/(*)-(*)", "join_on": "$2"}}]}}),
    # running
    (E, "datum_set_spec", "divides by", '{"number": 100}', {"datum_set_spec": {}}, {"datum_set_spec": {"number": 1}}),
    (W, "datum_set_spec.per_worker", "no effect", "one of them",
     {"datum_set_spec": {"number": 1, "per_worker": 1}}, {"datum_set_spec": {"per_worker": 1}}),
    (E, "parallelism_spec.constant", "exactly one worker", "write 1",
     {**service(), "parallelism_spec": {"constant": 2}}, {**service(), "parallelism_spec": {"constant": 1}}),
    (E, "parallelism_spec", "exactly one worker", "write 1", {**service(), "parallelism_spec": {}}, service()),
    (E, "autoscaling", "never idle", "remove", {**service(), "autoscaling": True}, {"autoscaling": True}),
    (E, "service.external_port", "29999 is outside 30000 to 32767", "3",
     service(external_port=29999), service(external_port=30000)),
    (E, "service.external_port", "32768 is outside", "", service(external_port=32768), service(external_port=32767)),
    (E, "service.external_port", "8080 is outside", "30080", service(external_port=8080),
     service(external_port=8080, type="LoadBalancer")),
    (E, "service.internal_port", "missing", "1 to 65535", {"service": {}, **serving()}, service()),
    (E, "service.external_port", "missing", "30000 to 32767", service(external_port=0), service()),
    (E, "service.external_port", "missing", "1 to 65535", service(external_port=0, type="ClusterIP"),
     service(external_port=1, type="ClusterIP")),
    (E, "service.type", "not a type of service", "NodePort", service(type="nodeport"), service(type="ClusterIP")),
    (E, "spout.service.external_port", "outside", "", {"spout": {"service": NEAR}}, {"spout": {"service": FAR}}),
    (E, "service", "gets no job", '"input"', {"service": FAR, "input": ...}, {"service": FAR, **serving()}),
    (E, "transform.datum_batching", "no next one", "remove",
     {**service(), "transform": {"image": "a:1", "cmd": ["true"], "datum_batching": True}},
     {"transform": {"image": "a:1", "cmd": ["true"], "datum_batching": True}}),
    (E, "input.pfs.lazy", "is read once", "remove", {**service(), **serving(lazy=True)}, serving(lazy=True)),
    (W, "input.pfs.glob", "single datum", 'write "/"', {**service(), **serving(glob="/*")}, serving(glob="/*")),
    (E, "autoscaling", "spout", "remove", {"spout": {}, "input": ..., "autoscaling": True},
     {"spout": {}, "input": ...}),
    (E, "reprocess_spec", "neither of the two", "every_job", {"reprocess_spec": "always"},
     {"reprocess_spec": "every_job"}),
    (N, "parallelism_spec.constant", "enterprise key", "",
     {"parallelism_spec": {"constant": 9}}, {"parallelism_spec": {"constant": 8}}),
    # resources
    (E, "resource_requests.memory", '"2GB" is not a valid quantity', '"2G"',
     {"resource_requests": {"memory": "2GB"}}, {"resource_requests": {"memory": "2G"}}),
    (W, "resource_requests.memory", "less than a mebibyte", '"512Mi"',
     {"resource_requests": {"memory": "512"}}, {"resource_requests": {"memory": "512Mi"}}),
    (E, "resource_requests.memory", "more than resource_limits.memory", "lower",
     {"resource_requests": {"cpu": 1, "memory": "2Gi"}, "resource_limits": {"memory": "1Gi"}},
     {"resource_requests": {"cpu": 1, "memory": "1024Mi"}, "resource_limits": {"memory": "1Gi"}}),
    (E, "resource_requests.gpu", "only in the requests", "resource_limits",
     {"resource_requests": {**REQUESTS, **GPU}}, {"resource_requests": REQUESTS, "resource_limits": GPU}),
    (E, "resource_requests.gpu", "both to be equal", "remove it",
     {"resource_requests": {**REQUESTS, **gpus(2)}, "resource_limits": GPU},
     {"resource_requests": {**REQUESTS, **GPU}, "resource_limits": GPU}),
    (E, "resource_limits.gpu", "has no type", "nvidia.com/gpu",
     {"resource_requests": REQUESTS, "resource_limits": {"gpu": {"number": 1}}},
     {"resource_requests": REQUESTS, "resource_limits": GPU}),
    (E, "resource_limits.gpu.type", "not a resource", "nvidia.com/gpu",
     {"resource_requests": REQUESTS, "resource_limits": {"gpu": {"type": "nvidia", "number": 1}}},
     {"resource_requests": REQUESTS, "resource_limits": {"gpu": {"type": "aliyun.com/gpu-mem", "number": 1}}}),
    (W, "resource_limits", "no request for cpu and memory", "add them", {"resource_limits": GPU},
     {"resource_limits": {**GPU, "cpu": 1, "memory": "1Gi"}}),
    (W, "resource_requests", "no request for memory", "add", {"resource_requests": {"cpu": 1}, "resource_limits": GPU},
     {"resource_requests": REQUESTS, "resource_limits": GPU}),
    (W, "sidecar_resource_limits.gpu", "storage container", "remove", {"sidecar_resource_limits": GPU}, {}),
    # images and commands
    (W, "transform.image", "does not name a version", "shell:0.1.0", runs("shell"), runs("shell:1")),
    (W, "transform.image", "does not name a version", "r.io/a:0.1.0", runs("r.io/a:latest"),
     runs(f"r.io/a@sha256:{'0' * 64}")),
    (W, "transform.image", "ubuntu", "name an image", {"transform": {"cmd": ["python3"]}},
     {"transform": {"cmd": ["sh"]}}),
    (E, "transform.image", "not a valid name of an image", "lower case", runs("Shell:1"), runs("shell:1")),
    (E, "transform.image", "placeholder", "your registry", runs("registry.example.com/t/a:1"),
     runs("example.io/t/a:1")),
    (E, "", "names no command to run", '"transform"', {"transform": ...}, {}),
    (E, "transform.stdin", "there is no command", '"cmd"', {"transform": {"image": "a:1", "stdin": ["x"]}},
     {"transform": {"image": "a:1", "cmd": ["sh"], "stdin": ["x"]}}),
    (E, "transform.cmd[2]", "has no module stages.indx", "stages.index",
     runs("r.io/lookalike-rapids:1", "python3", "-m", "stages.indx"),
     runs("r.io/lookalike-rapids:1", "python3", "-m", "stages.index")),
    (E, "transform.cmd[2]", "built without stages.features", "lookalike-tensorflow",
     runs("lookalike-cpu:1", "python3.11", "-m", "stages.features"),
     runs("others:1", "python3.11", "-m", "stages.features")),
    # users
    (W, "transform.user", "read-only.*/tmp.*no job ends", 'write "lookalike"',
     as_user("1000", OUR_IMAGE), as_user("lookalike", OUR_IMAGE)),
    (W, "transform.user", "read-only", "its name in the image's /etc/passwd", as_user("1001"), as_user("anna")),
    (W, "transform.user", "does not start a container as user 0", "write root", as_user("0"), as_user("root")),
    (W, "transform.user", "runs as lookalike .* cannot become nobody", 'write "lookalike"',
     as_user("nobody:users", OUR_IMAGE), as_user("1000:1000", OUR_IMAGE)),
    # secrets
    (W, "transform.secrets[1].mount_path", "again.*Kubernetes refuses two of one name", "a file for each of its keys",
     mounting(("s3", "/a"), ("s3", "/b")), mounting(("s3", "/a"), ("s4", "/b"), ("s3", ""))),
    # pods
    (E, "pod_spec", "does not parse", "JSON", {"pod_spec": "{"}, {"pod_spec": '{"hostNetwork": true}'}),
    (E, "pod_patch", "does not parse", "JSON", {"pod_patch": "["}, {"pod_patch": "[]"}),
    (E, "pod_patch", "text in double quotes, not a list", "holds JSON", {"pod_patch": []}, {"pod_patch": "[]"}),
    (E, "pod_spec", "not a JSON object", "", {"pod_spec": "[]"}, {"pod_spec": "{}"}),
    (E, "pod_patch", "there is no /tolerations", "the fields tolerations",
     {"pod_patch": patch({"op": "add", "path": "/tolerations/-", "value": TOLERATION})},
     {"pod_patch": patch({"op": "add", "path": "/tolerations", "value": [TOLERATION]})}),
    (E, "pod_patch", "there is no /containers/2", "containers/1",
     {"pod_patch": patch({"op": "remove", "path": "/containers/2"})},
     {"pod_patch": patch({"op": "add", "path": "/containers/0/resources/limits", "value": {}})}),
    (E, "pod_spec", "removes the container user and storage", "pod_patch",
     {"pod_spec": '{"containers": [{"name": "x"}]}'}, {"pod_spec": '{"priorityClassName": "x"}'}),
    (E, "pod_spec", "nodeSelectors is not a field of a pod", "nodeSelector",
     {"pod_spec": '{"nodeSelectors": {}}'}, {"pod_spec": '{"nodeSelector": {}}'}),
    (E, "pod_spec", "makes tolerations something other than a list", "a list",
     {"pod_spec": '{"tolerations": {}}'}, {"pod_spec": '{"tolerations": []}'}),
    (E, "pod_spec", "EXISTS is not a valid operator", "write Exists",
     {"pod_spec": '{"tolerations": [{"operator": "EXISTS"}]}'},
     {"pod_spec": '{"tolerations": [{"operator": "Exists"}]}'}),
    (E, "pod_spec", "NO_SCHEDULE is not a valid effect", "write NoSchedule",
     {"pod_spec": '{"tolerations": [{"effect": "NO_SCHEDULE"}]}'},
     {"pod_spec": '{"tolerations": [{"effect": "NoSchedule"}]}'}),
    (N, "pod_patch[0]", "unchecked: .* /containers/0/env/3/value", "",
     {"pod_patch": patch({"op": "replace", "path": "/containers/0/env/3/value", "value": "x"})},
     {"pod_patch": patch({"op": "add", "path": "/containers/0/env/-", "value": {"name": "x"}})}),
    # GPUs of instances
    (E, f'metadata.annotations["{SPECS}"]', "has 1 GPU, and the pod asks for 2 \\(user 2; init 2", "larger",
     eci("ecs.gn6i-c4g1.xlarge", limits=gpus(2)), eci("ecs.gn6i-c24g1.12xlarge", limits=gpus(2))),
    (E, f'metadata.annotations["{SPECS}"]', "asks for 2 \\(user 1 \\+ storage 1", "larger",
     eci("ecs.gn6i-c4g1.xlarge", pod_patch=patch(
         {"op": "add", "path": "/containers/1/resources/limits", "value": {"nvidia.com/gpu": "1"}})),
     eci("ecs.gn6i-c4g1.xlarge")),
    (E, f'metadata.annotations["{SPECS}"]', "2-4Gi has no GPU", "with GPUs only",
     eci("ecs.gn6i-c4g1.xlarge,2-4Gi"), eci("ecs.gn6i-c4g1.xlarge, ecs.gn7i-c8g1.2xlarge")),
    (E, f'metadata.annotations["{SPECS}"]', "asks for none", '"resource_limits"',
     {"metadata": {"annotations": {SPECS: "ecs.gn6i-c4g1.xlarge"}}}, {"metadata": {"annotations": {SPECS: "2-4Gi"}}}),
    (E, f'metadata.annotations["{SPECS}"]', "names 6", "keep",
     eci(",".join(["ecs.gn6i-c4g1.xlarge"] * 6)), eci(",".join(["ecs.gn6i-c4g1.xlarge"] * 5))),
    (N, f'metadata.annotations["{SPECS}"]', "unchecked: the number of GPUs of ecs.gn99", "",
     eci("ecs.gn99-c1g1.xlarge"), eci("ecs.gn7e-c16g1.4xlarge")),
    # generations
    (E, f'metadata.annotations["{SPECS}"]', "P4 GPUs \\(Pascal, compute capability 6.1\\).*cuML", "Turing",
     eci("ecs.gn5i-c4g1.xlarge"),
     eci("ecs.gn5i-c4g1.xlarge", transform={"image": "lookalike-tensorflow:1", "cmd": ["a"]})),
    (E, f'metadata.annotations["{SPECS}"]', "P100", "Turing", eci("ecs.gn5-c4g1.xlarge"), eci("ecs.gn6v-c8g1.2xlarge")),
    (E, 'scheduling_spec.node_selector["cloud.google.com/gke-accelerator"]', "nvidia-tesla-p4 has P4", "Turing",
     selected("cloud.google.com/gke-accelerator", "nvidia-tesla-p4"),
     selected("cloud.google.com/gke-accelerator", "nvidia-l4")),
    (E, 'scheduling_spec.node_selector["node.kubernetes.io/instance-type"]', "p2.xlarge has K80 GPUs \\(Kepler",
     "Turing",
     selected("node.kubernetes.io/instance-type", "p2.xlarge", "lookalike-tensorflow:1"),
     selected("node.kubernetes.io/instance-type", "g4dn.xlarge")),
    (E, 'scheduling_spec.node_selector["aliyun.accelerator/nvidia_name"]', "Tesla-P100-PCIE-16GB has P100", "Turing",
     selected("aliyun.accelerator/nvidia_name", "Tesla-P100-PCIE-16GB"),
     selected("aliyun.accelerator/nvidia_name", "Tesla-V100-SXM2-16GB")),
    # drivers
    (E, f'metadata.annotations["{DRIVER}"]', "driver 470 is too old: cuML .* needs 535", "tesla=550",
     eci("ecs.gn6i-c4g1.xlarge", "tesla=470.82"), eci("ecs.gn6i-c4g1.xlarge", "tesla=535")),
    (E, f'metadata.annotations["{DRIVER}"]', "driver 470 is too old: TensorFlow .* needs 525", "tesla=550",
     eci("ecs.gn6i-c4g1.xlarge", "tesla=470", transform={"image": "lookalike-tensorflow:1", "cmd": ["a"]}),
     eci("ecs.gn6i-c4g1.xlarge", "tesla=525", transform={"image": "lookalike-tensorflow:1", "cmd": ["a"]})),
    (E, f'metadata.annotations["{DRIVER}"]', "driver 550 is too old: cuML .*cu13.* needs 580", "tesla=580",
     eci("ecs.gn6i-c4g1.xlarge", "tesla=550", transform={"image": "lookalike-rapids-cuda13:1", "cmd": ["a"]}),
     eci("ecs.gn6i-c4g1.xlarge", "tesla=580", transform={"image": "lookalike-rapids-cuda13:1", "cmd": ["a"]})),
    (E, 'scheduling_spec.node_selector["node.kubernetes.io/instance-type"]', "p3.2xlarge has V100 GPUs \\(Volta",
     "Turing",
     selected("node.kubernetes.io/instance-type", "p3.2xlarge", "lookalike-rapids-cuda13:1"),
     selected("node.kubernetes.io/instance-type", "p6-b200.48xlarge", "lookalike-rapids-cuda13:1")),
    (E, f'metadata.annotations["{DRIVER}"]', '"550" does not name a driver', "tesla=550",
     eci("ecs.gn6i-c4g1.xlarge", "550"), eci("ecs.gn6i-c4g1.xlarge", "tesla=550")),
    (W, f'metadata.annotations["{SPECS}"]', "no k8s.aliyun.com/eci-gpu-driver-version", "tesla=550",
     eci("ecs.gn6i-c4g1.xlarge", None), eci("ecs.gn6i-c4g1.xlarge")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("level", "field", "why", "fix", "bad", "good"), CASES, ids=[f"{case[1]}: {case[2][:40]}" for case in CASES]
)
def test_a_check_finds_the_wrong_specification_and_not_the_right_one(
    findings: Any, level: FlawLevel, field: str, why: str, fix: str, bad: dict[str, Any], good: dict[str, Any]
) -> None:
    def found(fields: dict[str, Any]) -> list[tuple[FlawLevel, str, str, str]]:
        flaws = [each.flaw for each in findings(**fields)]
        return [(flaw.level, dotted(flaw.field), flaw.why, flaw.fix) for flaw in flaws]

    def is_it(one: tuple[FlawLevel, str, str, str]) -> bool:
        at_place = one[:2] == (level, field)
        return at_place and bool(re.search(why, one[2]) and re.search(fix, one[3]))

    assert any(map(is_it, found(bad))), found(bad)
    assert not any(map(is_it, found(good))), found(good)
    assert not [one for one in found(good) if one[0] == FlawLevel.ERROR]


def test_a_patch_of_tolerations_meets_them_in_kubernetes_spelling(findings: Any) -> None:
    mine = [{"key": "a", "operator": "EXISTS", "effect": "NO_SCHEDULE"}]
    made = {"key": "a", "operator": "Exists", "effect": "NoSchedule"}
    operations = [
        {"op": "test", "path": "/tolerations/0", "value": made},
        {"op": "add", "path": "/tolerations/-", "value": TOLERATION},
    ]
    assert not findings(tolerations=mine, pod_patch=patch(*operations))


def test_every_finding_has_a_line_and_says_why(findings: Any) -> None:
    for level, _, _, fix, bad, _ in CASES:
        for each in findings(**bad):
            assert each.flaw.why
            assert each.flaw.fix or not fix or each.flaw.level != level
            if each.flaw.field and each.flaw.field[0] in bad and bad[str(each.flaw.field[0])] is not ...:
                assert each.place.line is not None
                line = each.place.file.read_text().splitlines()[each.place.line - 1]
                assert line.strip()
