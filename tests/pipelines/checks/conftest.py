"""Specifications for the checks: a good one with changes, in files of its own."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from pipelines.checks.suite import check
from pipelines.specifications import drafts
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.findings import Finding

GOOD: dict[str, Any] = {
    "pipeline": {"name": "p"},
    "input": {"pfs": {"repo": "images", "glob": "/*"}},
    "transform": {"image": "shell:1", "cmd": ["sh"]},
}

Draw = Callable[..., SpecDraft]
Findings = Callable[..., Sequence[Finding]]


@pytest.fixture
def draft(tmp_path: Path) -> Draw:
    """Makes a draft of a good specification with other fields; a name makes it another file."""

    def make(name: str = "p", **changes: Any) -> SpecDraft:
        (tmp_path / "specs").mkdir(exist_ok=True)
        path = tmp_path / "specs" / f"{name}.json"
        document = {**GOOD, "pipeline": {"name": name}, **changes}
        path.write_text(json.dumps({key: value for key, value in document.items() if value is not ...}, indent=2))
        return drafts.read(path)

    return make


@pytest.fixture
def findings(draft: Draw) -> Findings:
    """The findings in a good specification with other fields."""
    return lambda **changes: check([draft(**changes)]).findings
