"""Flaws that only show when specifications are seen together, and the report of all findings."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from pipelines.checks import suite
from pipelines.specifications import drafts, optional_specs, overlays, pipeline_specs
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.findings import FlawLevel
from speclang.field_paths import dotted


def reads(*repos: str, kind: str = "", **fields: Any) -> dict[str, Any]:
    leaves = [{"pfs": {"repo": repo.partition("@")[0], "glob": "/*", **fields}} for repo in repos]
    for leaf, repo in zip(leaves, repos, strict=True):
        if "@" in repo:
            leaf["pfs"]["branch"] = repo.partition("@")[2]
    return {"input": {kind: leaves} if kind else leaves[0]}


def said(found: Sequence[SpecDraft], level: FlawLevel, rule: str = "graph") -> list[tuple[str, str, str, str]]:
    flaws = [(each.pipeline, each.flaw) for each in suite.check(found).findings]
    return [
        (name, dotted(flaw.field), flaw.why, flaw.fix)
        for name, flaw in flaws
        if (flaw.level, flaw.rule) == (level, rule)
    ]


def test_inputs_from_repos_that_nothing_writes(draft: Any) -> None:
    found = [
        draft("a", **reads("images")),
        draft("b", **reads("a")),
        draft("c", **reads("bb")),
        draft("d", **reads("x")),
    ]
    (error,) = said([*found[:2], draft("bbbb"), draft("c", **reads("bbb"))], FlawLevel.ERROR)
    assert error[:2] == ("c", "input.pfs.repo")
    assert "nothing writes bbb" in error[2]
    assert error[3] == "did you mean bbbb?"
    (warning,) = said([*found[:2], found[3]], FlawLevel.WARNING)
    assert warning[0] == "d"
    assert "nothing writes x" in warning[2]
    assert not said(found[:2], FlawLevel.ERROR) + said(found[:2], FlawLevel.WARNING)


def test_a_branch_that_its_pipeline_does_not_write(draft: Any) -> None:
    (warning,) = said([draft("a", output_branch="dev"), draft("b", **reads("a"))], FlawLevel.WARNING)
    assert warning[:2] == ("b", "input.pfs.branch")
    assert "a writes its branch dev: master only has commits moved there by hand" in warning[2]
    assert not said([draft("a", output_branch="dev"), draft("b", **reads("a@dev"))], FlawLevel.WARNING)
    assert not said([draft("a"), draft("b", **reads("a@late", trigger={"size": "1M"}))], FlawLevel.WARNING)
    (note,) = said([draft("a"), draft("b", **reads("a@train"))], FlawLevel.NOTE, "moved")
    assert note[2] == "it gets commits when `lookalike classify train --now` moves it there, and has none before"
    assert not said([draft("a"), draft("b", **reads("a@train"))], FlawLevel.WARNING)


def test_crosses_with_a_repo_that_may_stay_empty(draft: Any) -> None:
    cross = draft("b", **reads("a", "settings", kind="cross"))
    (warning,) = said([draft("a"), cross], FlawLevel.WARNING, "empty-cross")
    assert warning[:2] == ("b", "input.cross[1].pfs.repo")
    assert "while settings is empty, this cross has no datum" in warning[2]
    assert not said([draft("a"), cross], FlawLevel.WARNING)  # reported once
    good = [draft("a"), draft("settings"), cross]
    assert not said(good, FlawLevel.WARNING, "empty-cross")
    (note,) = said([draft("a"), draft("b", **reads("a", "models", kind="cross"))], FlawLevel.NOTE, "empty-cross")
    assert "while models is empty" in note[2]


def test_cycles(draft: Any) -> None:
    a, b, c = draft("a", **reads("c")), draft("b", **reads("a")), draft("c", **reads("b"))
    errors = said([a, b, c, draft("d", **reads("a"))], FlawLevel.ERROR)
    assert [(name, why) for name, _, why, _ in errors] == [
        (name, "a and b and c read each other in a cycle") for name in "abc"
    ]
    (own,) = said([draft("a", **reads("a"))], FlawLevel.ERROR)
    assert own[2] == "it reads its own output"
    assert not said([draft("a"), b, c], FlawLevel.ERROR)


def test_two_branches_of_one_repo_in_one_graph(draft: Any) -> None:
    near = [draft("a", **reads("images")), draft("b", **reads("a", "images@dev", kind="union"))]
    (error,) = said(near, FlawLevel.ERROR)
    assert error[:2] == ("b", "input.union[1].pfs.branch")
    assert "dev and master of images meet in one graph" in error[2]
    joined = draft("c", **reads("a", "b", kind="cross"))
    far = [draft("a", **reads("images")), draft("b", **reads("images@dev"))]
    assert not said(far, FlawLevel.ERROR)
    assert [each[0] for each in said([*far, joined], FlawLevel.ERROR)] == ["b"]  # through the pipeline where they meet
    own = [draft("a", **reads("images"), output_branch="dev"), draft("b", **reads("images", "a", kind="union"))]
    assert [each[0] for each in said(own, FlawLevel.ERROR)] == ["b"]
    apart = [draft("a", **reads("images")), draft("b", **reads("images"))]
    assert not said([*apart, joined], FlawLevel.ERROR)


def test_two_services_on_one_port(draft: Any) -> None:
    def serves(name: str, port: int, **fields: Any) -> Any:
        return draft(name, **reads("images"), service={"internal_port": 80, "external_port": port, **fields})

    (error,) = said([serves("a", 30080), serves("b", 30080)], FlawLevel.ERROR, "service")
    assert error[:2] == ("b", "service.external_port")
    assert "a has the port 30080 already" in error[2]
    assert not said([serves("a", 30080), serves("b", 30081)], FlawLevel.ERROR, "service")
    assert not said([serves("a", 80, type="ClusterIP"), serves("b", 80, type="ClusterIP")], FlawLevel.ERROR, "service")


def test_more_pipelines_than_the_community_edition_has(draft: Any) -> None:
    most = [draft(f"p{number}", **reads("images")) for number in range(16)]
    assert not said(most, FlawLevel.NOTE, "pipelines")
    (note,) = said([*most, draft("one-more", **reads("images"))], FlawLevel.NOTE, "pipelines")
    assert "these are 17 pipelines: without an enterprise key, Pachyderm allows 16" in note[2]


def test_two_pipelines_with_one_name(draft: Any) -> None:
    one, two = draft("a"), draft("b", pipeline={"name": "a"})
    (error,) = said([one, two], FlawLevel.ERROR, "name")
    assert str(one.path) in error[2]
    assert not said([one, draft("b")], FlawLevel.ERROR, "name")
    assert not suite.check([one], neighbours=[two]).findings  # another way to make the same pipeline


def test_neighbours_are_known_but_not_checked(draft: Any) -> None:
    a, b = draft("a", transfrom={}), draft("b", **reads("a"))
    assert not suite.check([b], neighbours=[a]).findings
    assert suite.check([b]).count(FlawLevel.WARNING) == 1


def test_one_flaw_of_an_overlay_is_one_finding(draft: Any, tmp_path: Any) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"all": {"datum_set_spec": {}}}, indent=1))
    overlay = overlays.load(str(path))
    report = suite.check(overlays.apply([overlay], [draft("a"), draft("b")]), [overlay])
    (finding,) = report.findings
    assert (finding.pipeline, finding.place.file, finding.place.line) == ("a, b", path, 3)
    parsed = json.loads(report.as_json())
    assert (parsed["errors"], parsed["warnings"], parsed["notes"]) == (1, 0, 0)
    assert parsed["findings"] == [
        {
            "level": "error",
            "rule": "datum-sets",
            "pipelines": ["a", "b"],
            "file": str(path),
            "line": 3,
            "field": "datum_set_spec",
            "why": finding.flaw.why,
            "fix": finding.flaw.fix,
        }
    ]


@pytest.mark.parametrize("names", [[], *([name] for name in overlays.names()), ["registry", "pull-secret", "eci"]])
def test_the_shipped_specifications_have_no_flaws(names: list[str]) -> None:
    on_top = [overlays.load(name, {"REGISTRY": "registry.cn-shanghai.aliyuncs.com/us"}) for name in names]
    report = suite.check(overlays.apply(on_top, drafts.find([pipeline_specs.SHIPPED_SPECS])), on_top)
    assert len(report.checked) == len(optional_specs.files(pipeline_specs.SHIPPED_SPECS))
    assert [each.flaw.why for each in report.findings if each.flaw.level > FlawLevel.NOTE] == []
    assert {each.flaw.rule for each in report.findings} <= {"empty-cross", "moved", "pipelines"}
