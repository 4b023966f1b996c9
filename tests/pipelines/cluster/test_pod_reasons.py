"""Kubernetes' reasons in plain words."""

import pytest

from pipelines.cluster.pod_reasons import plain_words

NONE = "preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod."


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (
            f"Unschedulable: 0/3 nodes are available: 1 Insufficient cpu, 2 Insufficient memory. {NONE}",
            "waits for a node with enough free CPU and memory for its worker: it starts when other work ends; or lower "
            "resource_requests, or add a node",
        ),
        (
            f"0/3 nodes are available: 1 Insufficient memory, 2 node(s) had untolerated taint {{a: }}. {NONE}",
            "waits for a node with enough free memory for its worker: it starts when other work ends; or lower "
            "resource_requests, or add a node",
        ),
        (
            "Unschedulable: 0/2 nodes are available: 2 node(s) had untolerated taint {nvidia.com/gpu: present}.",
            "every node repels its worker by the taint nvidia.com/gpu: tolerate it with an overlay, see "
            "`lookalike check`",
        ),
        (
            "0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector.",
            "no node has the labels that its worker asks for: correct scheduling_spec, see `lookalike check`",
        ),
        ("0/1 nodes are available: 1 node(s) were on fire.", "no node takes its worker: 1 node(s) were on fire."),
        (
            'Pulling: Pulling image "registry.example/cpu:1"',
            "its worker's node is pulling the image registry.example/cpu:1",
        ),
        (
            'ErrImagePull: rpc error: code = NotFound desc = failed to pull "x:1"',
            'the image of its worker cannot be pulled (rpc error: code = NotFound desc = failed to pull "x:1"): see '
            "`lookalike check`",
        ),
        (
            "OOMKilled: exit code 137",
            "its worker was killed for want of memory and starts again: raise resource_requests.memory",
        ),
        ("something\nelse", "something else"),
    ],
)
def test_reasons_in_plain_words(reason: str, words: str) -> None:
    assert plain_words(reason) == words
