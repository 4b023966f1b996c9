"""Changes between two moments in words."""

import pytest

from pipelines.analysis.changes import comparison_text
from pipelines.analysis.changes.pipeline_versions import SettingChange

INPUT = '{"pfs": {"name": "index", "repo": "index", "glob": "/*"}}'


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("3", "5", "K: 3 → 5 in search, render"),
        ("", "5", "K: none → 5 in search, render"),
        ("3", "", "K: 3 → none in search, render"),
        (INPUT, "3", "K: changed in search, render"),
        ("", INPUT, "K: changed in search, render"),
    ],
)
def test_a_parameter_is_shown_with_its_values_unless_one_is_long(before: str, after: str, said: str) -> None:
    assert comparison_text.setting(SettingChange("K", before, after, ("search", "render"))) == said
