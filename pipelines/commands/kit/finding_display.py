"""Findings on the terminal: the place, the field, the reason and the fix."""

import textwrap
from dataclasses import replace

from rich.text import Text

from pipelines.checks.suite import CheckReport
from pipelines.commands.kit.terminal import console, display_path, say
from pipelines.specifications.findings import Finding, Flaw, FlawLevel
from speclang.field_paths import dotted
from stages.datum.text_format import counted, visible

_COLOURS = {FlawLevel.ERROR: "bold red", FlawLevel.WARNING: "bold yellow", FlawLevel.NOTE: "bold blue"}
_NARROWEST, _WIDEST = 40, 120


def show(report: CheckReport) -> None:
    """Prints the findings and their number. A flaw in several places is printed once, below all of them."""
    groups: dict[Flaw, list[Finding]] = {}
    for finding in report.findings:
        groups.setdefault(finding.flaw, []).append(finding)
    for flaw, findings in groups.items():
        for finding in findings:
            _show_place(finding)
        _indented(flaw.why, "  ")
        if flaw.fix:
            _indented(flaw.fix, "  → ", "green")
    say(f"{counted(len(report.checked), 'specification', 'specifications')} checked: {_counts(report)}")


def _show_place(finding: Finding) -> None:
    flaw, place = finding.flaw, finding.place
    head = Text()
    head.append(flaw.level.name.lower(), style=_COLOURS[flaw.level])
    where = replace(place, file=display_path(place.file)) if place.file else place
    head.append(f" {visible(str(where))}", style="bold")
    if flaw.field:
        head.append(f" {visible(dotted(flaw.field))}", style="cyan")
    if finding.pipeline and (place.file is None or finding.pipeline != place.file.stem):
        head.append(f" ({visible(finding.pipeline)})")
    console.print(head, soft_wrap=True, highlight=False)


def _indented(text: str, first: str, style: str = "") -> None:
    width = max(_NARROWEST, min(console.width, _WIDEST))
    indent = " " * len(first)
    wrapped = textwrap.wrap(
        visible(text), width, initial_indent=first, subsequent_indent=indent, break_long_words=False
    )
    console.print(Text("\n".join(wrapped), style=style), soft_wrap=True, highlight=False)


def _counts(report: CheckReport) -> str:
    words = [
        ("error", "errors", FlawLevel.ERROR),
        ("warning", "warnings", FlawLevel.WARNING),
        ("note", "notes", FlawLevel.NOTE),
    ]
    found = [counted(report.count(level), one, many) for one, many, level in words if report.count(level)]
    return ", ".join(found) if found else "no problems found"
