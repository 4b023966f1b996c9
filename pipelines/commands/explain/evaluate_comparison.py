"""The part of the command `evaluate` that compares two models or metrics."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from pipelines.analysis.measurement import model_comparison
from pipelines.client.server.connection import Connection
from pipelines.commands.ask.past_query import STEPS
from pipelines.commands.kit import interrupts
from pipelines.commands.kit.terminal import console, plain_table, say, say_json
from stages.datum.text_format import counted, visible

_MOST_LABELS = 5


def compare(connection: Connection, model: Sequence[str], metric: Sequence[str], to: Path, as_json: bool) -> None:
    """Compares, writes the report below `to`, and shows the table or, as JSON, everything."""
    interrupts.explain("interrupted: nothing was written")
    found = model_comparison.compare(connection, model, metric, to, STEPS)
    if as_json:
        say_json({**found.found, "report": str(found.directory)})
        return
    for line in lines(found.found):
        if isinstance(line, Table):
            console.print(line)
        else:
            say(line)
    say(f"report: {found.directory / 'index.html'}")


def lines(found: Mapping[str, Any]) -> Iterator[Table | str]:
    """The comparison for the terminal: sides, table, verdict."""
    for side in "ab":
        about = found["about"][side]
        where = "as deployed" if about["deployed"] else "computed here"
        named = f"{visible(about['backbone'])} {about['model'][:12]}, {about['image_size']} px, {about['metric']}"
        yield f"{side.upper()}  {named}; {where}"
    if found["note"]:
        yield found["note"]
        return
    yield ""
    yield _table(found)
    yield ""
    yield f"{found['verdict']['words']}: {_counts(found)}"
    left = found["left_out"]["a"] + found["left_out"]["b"]
    if left:
        yield f"left out: {counted(left, 'query', 'queries')} of one side alone"
    for row in found["labels"][:_MOST_LABELS]:
        yield f"  {visible(row['label'])}: {row['a']:.3f} → {row['b']:.3f} of {row['queries']:,}"


def _table(found: Mapping[str, Any]) -> Table:
    table = plain_table(collapse_padding=True)
    for name in ("metric", "A", "B", "difference", "95 % interval", ""):
        table.add_column(name, no_wrap=True, justify="left" if name in ("metric", "") else "right")
    k = found["ks"][-1]
    for name in dict.fromkeys(("precision@1", f"precision@{k}", f"recall@{k}", f"mAP@{k}", f"MRR@{k}")):
        values = found["micro"][name]
        better = f"{values['better'].upper()}, beyond chance" if values["better"] else "chance"
        table.add_row(
            name,
            f"{values['a']:.3f}",
            f"{values['b']:.3f}",
            f"{values['difference']:+.3f}",
            f"{values['low']:+.3f} to {values['high']:+.3f}",
            "the same" if values["low"] == values["high"] == 0 else better,
        )
    return table


def _counts(found: Mapping[str, Any]) -> str:
    first = found["first"]
    if not first["only_a"] + first["only_b"]:
        return f"of {counted(found['queries'], 'query', 'queries')}, none is right on one side alone"
    chance = "< 0.001" if first["chance"] < 0.001 else f"{first['chance']:.3f}"
    return (
        f"of {counted(found['queries'], 'query', 'queries')}, {first['only_a']:,} right with A alone and "
        f"{first['only_b']:,} with B alone (McNemar: {chance})"
    )
