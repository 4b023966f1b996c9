"""An upgrade and the way back in words: the pipelines, the cost, the end; and as JSON."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.table import Table

from pipelines.cluster.library_overview import LibraryGrowth
from pipelines.commands.kit.terminal import console, plain_table, say
from pipelines.upgrades import upgrade_costs
from pipelines.upgrades.upgrade_costs import PipelineCost
from pipelines.upgrades.upgrade_plan import UpgradePlan
from pipelines.upgrades.upgrade_steps import CODE, UpgradeStep
from stages.datum.text_format import counted, rounded_time, size, visible

FIELDS = ("direction", "number", "commit", "pictures", "pipelines", "costs", "total", "sizes")
"""Those of the JSON."""

_COMPUTING = "features"
_OF_QUERIES = "features-queries"


def show(plan: UpgradePlan, found: Sequence[PipelineCost], pictures: int, back: bool) -> None:
    """Prints the pipelines with their changes, the choices that are kept, and the cost."""
    if not plan.sent:
        say("all of it is back already" if back else "the pipelines are up to date: nothing to do")
    table = plain_table("pipeline", "change")
    for step in plan.steps:
        table.add_row(step.pipeline, visible(change(step)))
    console.print(table)
    for line in _kept(plan.steps):
        say(line)
    if not plan.sent:
        return
    if not found:
        say("the cost: none, no datum is computed again")
        return
    console.print(_cost_table(found))
    say(_total(found, pictures))
    costs = {each.pipeline: each for each in found}
    if _COMPUTING in costs and costs[_COMPUTING].datums:
        limit = "" if costs[_COMPUTING].anew else "up to "
        say(f"the backbone computes {limit}{counted(pictures, 'picture', 'pictures')} again")
    elif _COMPUTING in {step.pipeline for step in plan.steps} and costs.keys().isdisjoint((_COMPUTING, _OF_QUERIES)):
        say("the backbone does not run again")


def growth(found: LibraryGrowth, settings: Mapping[str, str]) -> None:
    """Prints the reasons for other sizes, and the sizes."""
    for reason in found.outgrown:
        say(reason)
    if settings:
        say(f"sizes: {', '.join(f'{name}={value}' for name, value in settings.items())}")
    else:
        say(
            f"the library has not outgrown its segments: {found.in_segment:,} pictures in each, and "
            f"{found.files:.2f} files a picture in partition at most"
        )


def change(step: UpgradeStep) -> str:
    """The change of one pipeline."""
    if step.change == "deleted":
        return "deleted, with its output: the upgrade created it"
    if step.change == "unused":
        return f"stays, for {' and '.join(step.kept)}" if step.kept else "no longer used: stays as it is"
    if step.change in ("unchanged", "new"):
        return step.change
    before, after = step.code
    parts = [f"{CODE} {before or 'none'} → {after or 'none'}" if part == CODE else part for part in step.parts]
    ends = "" if step.reprocessed else "; nothing is computed again" if "input" not in step.parts else ""
    return f"{', '.join(parts) or 'nothing but its record'}{ends}"


def conclude(commit: str, back: bool, computes: bool) -> None:
    """Prints the end: what was done, where to see its progress, and the way back."""
    done = "back to the version before" if back else "upgraded"
    say(f"{done}: commit {commit}" if commit else done)
    if computes:
        say("its jobs are running: see `lookalike status`, or wait with `lookalike watch --until-idle`")
    if commit and not back:
        say("the way back: `lookalike upgrade --back`")


def data(
    plan: UpgradePlan, found: Sequence[PipelineCost], pictures: int, back: bool, commit: str, sizes: Mapping[str, str]
) -> dict[str, Any]:
    """All of it for --json."""
    pipelines = [
        {
            "name": step.pipeline,
            "change": step.change,
            "parts": step.parts,
            "before": step.code[0] or None,
            "after": step.code[1] or None,
            "reprocessed": step.reprocessed,
            "kept": step.kept,
        }
        for step in plan.steps
    ]
    values = ("back" if back else "upgrade", plan.record.number, commit or None, pictures, pipelines, found)
    return dict(zip(FIELDS, (*values, upgrade_costs.total(found), sizes), strict=True))


def _kept(steps: Iterable[UpgradeStep]) -> Iterator[str]:
    """The choices, each with the pipelines that have it."""
    found: dict[str, list[str]] = {}
    for step in steps:
        for choice in step.kept if step.change not in ("unused", "deleted") else ():
            found.setdefault(choice, []).append(step.pipeline)
    for choice, names in found.items():
        yield f"kept: {choice} in {', '.join(names)}"


def _cost_table(found: Iterable[PipelineCost]) -> Table:
    table = plain_table("to compute", numbers=("datums", "time", "more storage"))
    table.add_column("on")
    for each in found:
        datums = "unknown" if each.datums is None else f"{'' if each.anew else 'up to '}{each.datums:,}"
        time = "unknown" if each.seconds is None else rounded_time(each.seconds) if each.datums else ""
        table.add_row(each.pipeline, datums, time, size(each.bytes) if each.bytes else "", "GPU" if each.gpu else "CPU")
    return table


def _total(found: Sequence[PipelineCost], pictures: int) -> str:
    all_ = upgrade_costs.total(found)
    datums = counted(all_.datums, "datum", "datums") + (
        f" of {counted(pictures, 'picture', 'pictures')}" if pictures else ""
    )
    limit = "" if all(each.anew for each in found) else "up to "
    time = f"{rounded_time(all_.seconds)} one after the other" if all_.datums else "no time"
    unknown = f"; unknown for {', '.join(all_.unknown)}" if all_.unknown else ""
    gpus = [each.pipeline for each in found if each.gpu]
    return (
        f"in total: {limit}{datums}, {time}{unknown}; {size(all_.bytes)} more in the history"
        f"{'; ' + counted(len(gpus), 'pipeline runs on a GPU', 'pipelines run on GPUs') if gpus else ''}"
    )
