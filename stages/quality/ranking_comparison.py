"""Two rankings of the same labelled pictures compared query by query: the difference of each measure with its interval,
McNemar's test of the nearest, the labels that differ, and example queries.

NumPy alone; knows no files and no markup. The two sides are `a` and `b`; a difference is b's value less a's. Pictures
are matched by their first source: their ids differ where the sizes of pictures do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from stages.quality import measures
from stages.quality.measures import rounded
from stages.quality.ranking_verdicts import RankingVerdicts

CHANCE = 0.05
"""The probability by chance below which a difference is said to be beyond chance; intervals are of 1 less this."""

MOST_EXAMPLES = 12
"""Most example queries of a kind."""

_RESAMPLES = 2000
_WORK = 1 << 30  # numbers that all resamples together may touch

_Floats = npt.NDArray[np.float64]
_Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class QueryPairs:
    """The n queries that count on both sides: their rows in a's and in b's table, sorted by source. only_a and only_b:
    the numbers of queries that count on one side alone."""

    a: _Rows
    b: _Rows
    only_a: int
    only_b: int

    def __len__(self) -> int:
        return len(self.a)


def pair(a: RankingVerdicts, b: RankingVerdicts) -> QueryPairs:
    """The queries of both sides, matched."""
    mine, theirs = _counted(a), _counted(b)
    shared = sorted(mine.keys() & theirs.keys())
    rows = [np.asarray([of[source] for source in shared], np.int64) for of in (mine, theirs)]
    return QueryPairs(rows[0], rows[1], len(mine) - len(shared), len(theirs) - len(shared))


def compare_rankings(a: RankingVerdicts, b: RankingVerdicts) -> dict[str, Any]:
    """The comparison as JSON values, rounded: queries, verdict, first (McNemar's table), measures (micro and macro),
    curves of each side, labels, examples; `note` is the reason for which there is none, or ""."""
    pairs = pair(a, b)
    found: dict[str, Any] = {
        "queries": len(pairs),
        "left_out": {"a": pairs.only_a, "b": pairs.only_b},
        "note": "" if len(pairs) else "no labelled picture is a query on both sides, so nothing can be compared",
    }
    if not len(pairs):
        return found
    ks = measures.ranks(min(each.rankings.k for each in (a, b)))
    judged = a.judged.part(pairs.a), b.judged.part(pairs.b)
    cut = [_cut(each, ks[-1]) for each in judged]
    values = [measures.measure(each, ks) for each in cut]
    labels = np.unique(np.asarray([a.names[code] for code in judged[0].labels], object), return_inverse=True)
    micro, macro, resamples = differences(values[0], values[1], labels[1])
    first = firsts(cut[0].right[:, 0], cut[1].right[:, 0])
    return found | {
        "ks": ks,
        "resamples": resamples,
        "first": first,
        "verdict": verdict(first, bool((values[0] == values[1]).all())),
        "micro": dict(zip(measures.names(ks), micro, strict=True)),
        "macro": dict(zip(measures.names(ks), macro, strict=True)),
        "curves": {name: _curves(each, ks) for name, each in zip("ab", cut, strict=True)},
        "labels": _labels(labels[0].tolist(), labels[1], cut[0].right[:, 0], cut[1].right[:, 0]),
        "examples": _examples(a, b, pairs),
    }


def differences(
    a: _Floats, b: _Floats, labels: npt.NDArray[np.intp]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], int]:
    """The differences of paired values (n, m), m measures of n queries: of the means over queries, of the means over
    labels (n,), and the number of resamples.

    The intervals are of the bootstrap: queries are drawn again, each with the values of both sides. Queries with equal
    labels and values are drawn as one group, by their number, which is the same distribution. The seed is the hash of
    the groups, so equal input gives equal intervals.
    """
    keyed = np.column_stack([labels.astype(np.float64), a, b])
    groups, numbers = np.unique(keyed, axis=0, return_counts=True)  # sorted by label
    codes, columns = groups[:, 0], a.shape[1]
    both = groups[:, 1:]
    starts = np.flatnonzero(np.diff(codes, prepend=-1.0))
    means = measures.means(numbers, both, starts)
    resamples = int(np.clip(_WORK // (both.size + 1), measures.FEWEST, _RESAMPLES))
    seed = groups.tobytes() + numbers.tobytes()
    drawn = measures.resampled_means(numbers, both, starts, seed, resamples)
    gains = drawn[..., columns:] - drawn[..., :columns]
    lows, highs = np.percentile(gains, [100 * CHANCE / 2, 100 - 100 * CHANCE / 2], axis=0)
    micro, macro = (
        [_difference(of[place], of[columns + place], low[place], high[place]) for place in range(columns)]
        for of, low, high in zip(means, lows, highs, strict=True)
    )
    return micro, macro, resamples


def firsts(a: npt.NDArray[np.bool_], b: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """The queries whose nearest is right on both sides, on one alone and on none, and the probability of so unequal
    numbers by chance: McNemar's exact test."""
    won, lost = int((b & ~a).sum()), int((a & ~b).sum())
    return {
        "both": int((a & b).sum()),
        "only_a": lost,
        "only_b": won,
        "neither": int((~a & ~b).sum()),
        "chance": rounded(mcnemar(won, lost)),
    }


def mcnemar(won: int, lost: int) -> float:
    """The probability, two-sided, that of `won` + `lost` queries which one side alone answers rightly so few or fewer
    are of one side, if each side were as likely. Exact."""
    of = won + lost
    whole = math.lgamma(of + 1) - of * math.log(2)
    tail = math.fsum(
        math.exp(whole - math.lgamma(each + 1) - math.lgamma(of - each + 1)) for each in range(min(won, lost) + 1)
    )
    return min(1.0, 2 * tail)


def verdict(first: Mapping[str, Any], same: bool) -> dict[str, Any]:
    """The side that is better at rank 1 ("a", "b" or ""), and the words for it. same: all measures of all queries are
    equal."""
    better = "" if first["chance"] >= CHANCE else "b" if first["only_b"] > first["only_a"] else "a"
    if better:
        words = f"{better.upper()} finds more at rank 1, beyond chance"
    elif same:
        words = "A and B find the same"
    elif first["only_a"] == first["only_b"]:
        words = "A and B find as many at rank 1"
    else:
        words = f"{'B' if first['only_b'] > first['only_a'] else 'A'} finds more at rank 1, but chance can explain it"
    return {"better": better, "words": words, "same": same}


def _counted(side: RankingVerdicts) -> dict[str, int]:
    """The rows of the queries that count, by source."""
    return {side.rankings.sources[row]: row for row in np.flatnonzero(side.judged.counts).tolist()}


def _cut(judged: measures.RelevanceMatrix, k: int) -> measures.RelevanceMatrix:
    """The same queries with at most k neighbours."""
    depths = np.minimum(judged.depths, k).astype(np.int32)
    return measures.RelevanceMatrix(judged.labels, judged.right[:, :k], depths, judged.relevant)


def _difference(a: float, b: float, low: float, high: float) -> dict[str, Any]:
    better = "b" if low > 0 else "a" if high < 0 else ""
    values = {"a": a, "b": b, "difference": b - a, "low": low, "high": high}
    return {name: rounded(value) for name, value in values.items()} | {"better": better}


def _curves(judged: measures.RelevanceMatrix, ks: Sequence[int]) -> dict[str, list[list[float]]]:
    """Precision and recall at each k, as [k, value, low, high]; intervals of one side alone."""
    by_name = measures.estimate(judged, ks).micro
    return {
        kind: [[k, *(rounded(getattr(by_name[f"{kind}@{k}"], of)) for of in ("value", "low", "high"))] for k in ks]
        for kind in ("precision", "recall")
    }


def _labels(
    names: Sequence[str], codes: npt.NDArray[np.intp], a: npt.NDArray[np.bool_], b: npt.NDArray[np.bool_]
) -> list[dict[str, Any]]:
    """The labels on which the sides differ at rank 1, the most unequal first."""
    rows = []
    for code in np.unique(codes[a != b]).tolist():
        of = codes == code
        won, lost = int((b & ~a)[of].sum()), int((a & ~b)[of].sum())
        values = {"a": float(a[of].mean()), "b": float(b[of].mean()), "chance": mcnemar(won, lost)}
        counts = {"label": names[code], "queries": int(of.sum()), "only_a": lost, "only_b": won}
        rows.append(counts | {name: rounded(value) for name, value in values.items()})
    return sorted(rows, key=lambda row: (-abs(row["only_b"] - row["only_a"]), row["chance"], row["label"]))


def _examples(a: RankingVerdicts, b: RankingVerdicts, pairs: QueryPairs) -> dict[str, list[dict[str, Any]]]:
    """Queries that one side alone answers rightly, those with the nearest right neighbour first."""
    right = a.judged.right[pairs.a, 0], b.judged.right[pairs.b, 0]
    found = {}
    for name, of, rows, kept in (
        ("only_a", a, pairs.a, right[0] & ~right[1]),
        ("only_b", b, pairs.b, right[1] & ~right[0]),
    ):
        places = np.flatnonzero(kept)
        order = np.argsort(of.distances[rows[places], 0], kind="stable")[:MOST_EXAMPLES]
        found[name] = [_example(a, b, int(pairs.a[place]), int(pairs.b[place])) for place in places[order]]
    return found


def _example(a: RankingVerdicts, b: RankingVerdicts, row: int, other: int) -> dict[str, Any]:
    return {
        "source": a.rankings.sources[row],
        "label": a.rankings.labels[row],
        "a": _nearest(a, row),
        "b": _nearest(b, other),
    }


def _nearest(side: RankingVerdicts, row: int) -> dict[str, Any]:
    near = int(side.neighbours[row, 0])
    return {
        "source": side.rankings.sources[near],
        "label": side.rankings.labels[near],
        "distance": float(side.distances[row, 0]),
    }
