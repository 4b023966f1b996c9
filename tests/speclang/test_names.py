"""The rules of names."""

import pytest

from speclang import names
from speclang.names import NameFault, NameRule


@pytest.mark.parametrize("name", ["a", "A-b_9", "-x", "_"])
def test_names(name: str) -> None:
    assert names.is_name(name)


@pytest.mark.parametrize("name", ["", "a b", "a/b", "ä", "a.b", "a\n", "١"])
def test_texts_that_are_not_names(name: str) -> None:
    assert not names.is_name(name)
    assert NameFault(NameRule.CHARACTERS) in names.pipeline_faults(name, "default")


@pytest.mark.parametrize(
    ("name", "project", "faults"),
    [
        ("a_B-9", "default", []),
        ("p" * 51, "q", []),
        ("-a", "default", [NameFault(NameRule.BEGINNING)]),
        ("a" * 53, "q", [NameFault(NameRule.LENGTH, 2)]),
        ("p" * 30, "q" * 28, []),
        ("p" * 30, "q" * 29, [NameFault(NameRule.KUBERNETES, 1)]),
        (
            "." * 60,
            "q",
            [NameFault(NameRule.CHARACTERS), NameFault(NameRule.LENGTH, 9), NameFault(NameRule.KUBERNETES, 3)],
        ),
    ],
)
def test_names_of_pipelines(name: str, project: str, faults: list[NameFault]) -> None:
    assert list(names.pipeline_faults(name, project)) == faults


@pytest.mark.parametrize(
    ("name", "faults"),
    [
        ("default", []),
        ("9-b_c", []),
        ("a" * 51, []),
        ("", [NameFault(NameRule.CHARACTERS)]),
        ("_a", [NameFault(NameRule.BEGINNING)]),
        ("-" * 52, [NameFault(NameRule.LENGTH, 1), NameFault(NameRule.BEGINNING)]),
    ],
)
def test_names_of_projects(name: str, faults: list[NameFault]) -> None:
    assert list(names.project_faults(name)) == faults


def test_the_name_that_kubernetes_gives() -> None:
    assert names.kubernetes_name("Edges_2", "My_Project") == "my-project-edges-2-v99"
