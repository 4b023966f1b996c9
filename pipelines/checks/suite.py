"""All checks of a set of specifications at once. Talks to no server: the files of repos are passed in."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.checks import (
    datum_counts,
    gpu_requests,
    image_commands,
    inputs,
    names,
    pods,
    resources,
    run_settings,
    spec_graph,
    stage_variables,
)
from pipelines.checks.datum_counts import GlobPaths
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.findings import Finding, Flaw, FlawLevel, FlawPlace
from pipelines.specifications.overlays import Overlay
from speclang.field_paths import dotted

_OF_ONE: Sequence[Callable[[SpecDraft], Iterable[Flaw]]] = (
    names.check,
    image_commands.check,
    inputs.check,
    run_settings.check,
    resources.check,
    pods.check,
    gpu_requests.check,
)


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The findings, the gravest first, and the files that were checked. A flaw that several pipelines get from one
    place, such as an overlay, is one finding with all their names."""

    findings: Sequence[Finding]
    checked: Sequence[str]

    def of(self, least: FlawLevel) -> "CheckReport":
        """The report with only the findings of a level and above."""
        return CheckReport([each for each in self.findings if each.flaw.level >= least], self.checked)

    def with_more(self, findings: Sequence[Finding]) -> "CheckReport":
        """The report with other findings added."""
        return CheckReport(_together([*self.findings, *findings]), self.checked)

    def count(self, level: FlawLevel) -> int:
        """How many findings of a level there are."""
        return sum(each.flaw.level == level for each in self.findings)

    def as_json(self) -> str:
        """The report as JSON, for programs."""
        counts = {f"{level.name.lower()}s": self.count(level) for level in reversed(FlawLevel)}
        return json.dumps({"checked": self.checked, **counts, "findings": [_json(each) for each in self.findings]})


def check(
    drafts: Sequence[SpecDraft],
    overlays: Sequence[Overlay] = (),
    repos: Mapping[str, GlobPaths] | None = None,
    neighbours: Sequence[SpecDraft] = (),
) -> CheckReport:
    """Checks specifications that have their overlays applied. `repos` has the files of the repos to count datums in;
    `neighbours` belong to the same graph but are not checked themselves."""
    found = [finding for overlay in overlays for finding in overlay.findings]
    found += [finding for draft in drafts for finding in draft.findings]
    read = [draft for draft in drafts if not any(each.flaw.rule == "json" for each in draft.findings)]
    for draft in read:
        flaws = [flaw for look in _OF_ONE for flaw in look(draft)] + list(datum_counts.check(draft, repos or {}))
        found += [draft.finding(flaw) for flaw in flaws]
    found += spec_graph.check(read, neighbours)
    found += stage_variables.check(read, neighbours)
    return CheckReport(_together(found), [str(draft.path) for draft in drafts])


def _together(findings: Iterable[Finding]) -> list[Finding]:
    groups: dict[tuple[Flaw, FlawPlace], list[str]] = {}
    for each in findings:
        groups.setdefault((each.flaw, each.place), []).append(each.pipeline)
    merged = [
        Finding(flaw, ", ".join(filter(None, dict.fromkeys(names))), place) for (flaw, place), names in groups.items()
    ]
    return sorted(merged, key=lambda each: (-each.flaw.level, str(each.place.file), each.place.line or 0))


def _json(finding: Finding) -> Mapping[str, Any]:
    return {
        "level": finding.flaw.level.name.lower(),
        "rule": finding.flaw.rule,
        "pipelines": finding.pipeline.split(", ") if finding.pipeline else [],
        "file": str(finding.place.file) if finding.place.file else None,
        "line": finding.place.line,
        "field": dotted(finding.flaw.field),
        "why": finding.flaw.why,
        "fix": finding.flaw.fix,
    }
