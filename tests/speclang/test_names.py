"""The rules of names."""

import pytest

from speclang import names
from speclang.names import Fault, Rule


@pytest.mark.parametrize("name", ["a", "A-b_9", "-x", "_"])
def test_names(name: str) -> None:
    assert names.is_name(name)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "ä", "a.b", "a\n", "١"])
def test_texts_that_are_not_names(name: str) -> None:
    assert not names.is_name(name)
    assert Fault(Rule.CHARACTERS) in names.pipeline_faults(name, "default")


@pytest.mark.parametrize(
    ("name", "project", "faults"),
    [
        ("a_B-9", "default", []),
        ("p" * 51, "q", []),
        ("-a", "default", [Fault(Rule.BEGINNING)]),
        ("a" * 53, "q", [Fault(Rule.LENGTH, 2)]),
        ("p" * 30, "q" * 28, []),
        ("p" * 30, "q" * 29, [Fault(Rule.KUBERNETES, 1)]),
        ("." * 60, "q", [Fault(Rule.CHARACTERS), Fault(Rule.LENGTH, 9), Fault(Rule.KUBERNETES, 3)]),
    ],
)
def test_names_of_pipelines(name: str, project: str, faults: list[Fault]) -> None:
    assert list(names.pipeline_faults(name, project)) == faults


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        ("default", []),
        ("9-b_c", []),
        ("a" * 51, []),
        ("", [Fault(Rule.CHARACTERS)]),
        ("_a", [Fault(Rule.BEGINNING)]),
        ("-" * 52, [Fault(Rule.LENGTH, 1), Fault(Rule.BEGINNING)]),
    ],
)
def test_names_of_projects(name: str, faults: list[Fault]) -> None:
    assert list(names.project_faults(name)) == faults


def test_the_name_that_kubernetes_gives() -> None:
    assert names.kubernetes_name("Edges_2", "My_Project") == "my-project-edges-2-v99"
