"""Two evaluations side by side as one self-contained HTML file: the verdict, measures, labels, example queries.

Takes the values of stages.quality.ranking_comparison; computes nothing. The page runs no scripts, and its policy lets
it load nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stages.datum import text_format
from stages.datum.text_format import counted
from stages.report import markup, plots, report_markup
from stages.report.markup import text
from stages.report.plots import PlotAxis, PlotCurve
from stages.report.report_markup import share, table

MOST_LABELS = 30

_STYLE = """
.verdict { margin: 16px 0 0; font-size: 1.1875rem; font-weight: 600; }
dl.sides { margin: 14px 0 0; } dl.sides dt { font-weight: 650; color: var(--ink); }
.examples { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 340px), 1fr)); gap: 16px; }
.example { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 12px; padding: 14px;
  border: 1px solid var(--edge); border-radius: 14px; background: var(--card); }
.example figcaption { margin-top: 4px; font-size: 0.8125rem; line-height: 1.35; color: var(--muted); }
.example figcaption b { color: var(--ink); }
.example .right b { color: var(--accent); }
.example .right img, .example .right .blank { outline: 2px solid var(--accent); outline-offset: 1px; }
"""


def page(found: Mapping[str, Any], thumbnails: Mapping[str, bytes]) -> str:
    """The report as text for a UTF-8 file. thumbnails: JPEG files by source, of any of the examples."""
    body = [*_head(found), "<main>"]
    if found["queries"]:
        body += [*_measures(found), *_first(found), *_labels(found), *_examples(found, thumbnails)]
    return "\n".join([*body, *_versions(found), "</main>", *_foot(found), ""])


def _head(found: Mapping[str, Any]) -> Iterator[str]:
    yield from markup.head("Two models side by side", report_markup.STYLE + _STYLE)
    yield "<header>"
    yield "<h1>Two models side by side</h1>"
    left = found["left_out"]["a"] + found["left_out"]["b"]
    only = f"; {counted(left, 'query', 'queries')} of one side alone left out" if left else ""
    yield f'<p class="summary">{counted(found["queries"], "query", "queries")}: labelled pictures{only}</p>'
    yield '<dl class="facts sides">'
    for side in "ab":
        yield f"<div><dt>{side.upper()}</dt><dd>{_described(found['about'][side])}</dd></div>"
    yield "</dl>"
    if found["note"]:
        yield f'<ul class="notes"><li>{text(found["note"])}</li></ul>'
    else:
        yield f'<p class="verdict">{text(found["verdict"]["words"])}.</p>'
    yield "</header>"


def _measures(found: Mapping[str, Any]) -> Iterator[str]:
    yield '<h2 id="measures">Precision and recall</h2>'
    yield '<div class="plots">'
    for kind, said in (("precision", "of the k nearest, the share that is right"), ("recall", "of all that is right")):
        yield f'<figure>{_plot(found, kind)}<figcaption><p class="said">{kind}@k: {said}</p></figcaption></figure>'
    yield "</div>"
    rows = [
        [text(name), text(mean), *_cells(values)] for mean, name, values in shown(found) if mean != "labels" or values
    ]
    header = ("measure", "mean over", "A", "B", "difference", "better, beyond chance")
    caption = f"paired over queries, with 95 % intervals of {found['resamples']:,} resamples"
    yield from table("measures", caption, header, rows, numbers=(2, 3, 4))


def shown(found: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The rows of the table of measures: what the mean is over, the measure's name, and its values."""
    ks = found["ks"]
    names = [f"precision@{k}" for k in dict.fromkeys((1, *(each for each in (3, 5) if each in ks), ks[-1]))]
    names += [f"recall@{ks[-1]}", f"mAP@{ks[-1]}", "MRR"]
    yield from (("queries", name, found["micro"][name]) for name in names)
    yield "labels", "precision@1", found["macro"]["precision@1"]


def _cells(values: Mapping[str, Any]) -> list[str]:
    return [
        share(values["a"]),
        share(values["b"]),
        f"{values['difference']:+.3f} <small>{values['low']:+.3f} to {values['high']:+.3f}</small>",
        values["better"].upper() or "<small>chance</small>",
    ]


def _plot(found: Mapping[str, Any], kind: str) -> str:
    lines = []
    for side in "ab":
        rows = found["curves"][side][kind]
        lines.append(PlotCurve(side.upper(), [(row[0], row[1]) for row in rows], [(row[0], *row[2:]) for row in rows]))
    ends = [
        f"{line.name} {share(line.points[0][1])} at 1, {share(line.points[-1][1])} at {found['ks'][-1]}"
        for line in lines
    ]
    ks = found["ks"]
    return plots.curves(
        f"{kind}@k", "; ".join(ends), PlotAxis("k", ks[0], ks[-1]), PlotAxis(kind, 0, 1), lines, whole=True
    )


def _first(found: Mapping[str, Any]) -> Iterator[str]:
    first = found["first"]
    yield '<h2 id="first">The nearest picture</h2>'
    rows = [
        [name, f"{first[key]:,}"]
        for name, key in (
            ("right on both sides", "both"),
            ("right with A alone", "only_a"),
            ("right with B alone", "only_b"),
            ("wrong on both", "neither"),
        )
    ]
    yield from table("first", f"McNemar's exact test: {chance(first)}", ("nearest", "queries"), rows, numbers=(1,))


def chance(first: Mapping[str, Any]) -> str:
    """The result of McNemar's test, in words."""
    if not first["only_a"] + first["only_b"]:
        return "no query is right on one side alone"
    probability = first["chance"]
    share = "less than 0.001" if probability < 0.001 else f"{probability:.3f}"
    return f"as unequal by chance with probability {share}"


def _labels(found: Mapping[str, Any]) -> Iterator[str]:
    rows = found["labels"]
    if not rows:
        return
    yield '<h2 id="labels">Labels that differ</h2>'
    cells = [
        [
            f"<bdi>{text(row['label'])}</bdi>",
            f"{row['queries']:,}",
            share(row["a"]),
            share(row["b"]),
            f"{row['b'] - row['a']:+.3f}",
            f"{row['chance']:.3f}",
        ]
        for row in rows[:MOST_LABELS]
    ]
    more = f"; {len(rows) - MOST_LABELS:,} more are in comparison.json" if len(rows) > MOST_LABELS else ""
    header = ("label", "queries", "A", "B", "difference", "probability by chance")
    yield from table("labels", f"precision@1, the most unequal first{more}", header, cells, numbers=(1, 2, 3, 4, 5))


def _examples(found: Mapping[str, Any], thumbnails: Mapping[str, bytes]) -> Iterator[str]:
    for key, side in (("only_b", "b"), ("only_a", "a")):
        if not found["examples"][key]:
            continue
        yield f'<h2 id="{key.replace("_", "-")}">Right with {side.upper()} alone</h2>'
        yield '<div class="examples">'
        for each in found["examples"][key]:
            yield '<div class="example">'
            yield _picture("query", each, thumbnails, f"<b><bdi>{text(each['label'])}</bdi></b>")
            for name in "ab":
                near = each[name]
                words = f"<b><bdi>{text(near['label'])}</bdi></b> {text_format.distance(near['distance'])}"
                yield _picture(name.upper(), near, thumbnails, words, right=name == side)
            yield "</div>"
        yield "</div>"


def _picture(
    name: str, each: Mapping[str, Any], thumbnails: Mapping[str, bytes], words: str, right: bool = False
) -> str:
    drawn = markup.picture(thumbnails.get(each["source"]), each["source"])
    source = text(each["source"])
    kind = ' class="right"' if right else ""
    return f"<figure{kind}>{drawn}<figcaption>{name}: {words}<br><bdi>{source}</bdi></figcaption></figure>"


def _versions(found: Mapping[str, Any]) -> Iterator[str]:
    yield '<h2 id="versions">Versions</h2>'
    about = found["about"]
    names = sorted({*about["a"], *about["b"]} - {"environments"})
    rows = [
        [
            text(name.replace("_", " ")),
            *(f"<code>{text(str(about[side].get(name, '')))}</code>" for side in "ab"),
        ]
        for name in names
    ]
    stages = sorted({*about["a"]["stages"], *about["b"]["stages"]}) if "stages" in names else []
    rows = [row for row in rows if row[0] != "stages"]
    rows += [
        [text(name), *(f"<code>{text(about[side]['stages'].get(name, ''))}</code>" for side in "ab")] for name in stages
    ]
    yield from table("versions", "", ("", "A", "B"), rows, numbers=())
    commits = ", ".join(f"{text(name)} <code>{text(id[:12])}</code>" for name, id in about["commits"].items())
    yield f"<p>Commits: {commits}.</p>"


def _described(side: Mapping[str, Any]) -> str:
    where = "as deployed" if side["deployed"] else "computed for this comparison"
    return (
        f"{text(side['backbone'])} <code>{text(side['model'][:12])}</code>, {side['image_size']} pixels, "
        f"{text(side['metric'])}; {where}"
    )


def _foot(found: Mapping[str, Any]) -> Iterator[str]:
    yield "<footer><p>"
    yield "A query is a labelled picture, and right if its nearest labelled picture has its label. A difference is"
    yield "beyond chance if its interval does not contain 0 or, at rank 1, if McNemar's test gives less than 0.05; one"
    yield "such test in twenty says so of equal models. <code>comparison.json</code>, beside this page, has all of it."
    yield "</p></footer>"
    yield from markup.end()
