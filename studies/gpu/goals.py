"""The goals of search on a card, as far as findings tell: certified beside cuML alone and beside scikit-learn, and
every answer equal to float64. Imports nothing that may be missing on the card's machine."""

from collections.abc import Iterator, Mapping
from typing import Any

CUML_ALONE = "fit and kneighbors, k=3, from host memory (the article's row: 0.791 s)"
SKLEARN = "scikit-learn, brute, all cores"
CERTIFIED = "BACKEND=cuml: search"

_TIMES_CUML, _TIMES_SKLEARN = 1.5, 100.0


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """A line for each goal. found: the findings by step, as studies.gpu.prove writes them."""
    notes = {step: each.get("notes", {}) for step, each in found.items()}
    card = notes.get("card", {}).get("nvidia-smi")
    yield f"card: {card}" if isinstance(card, str) else "card: none, or not asked for: these are no figures of one"
    certified = _at(notes, "certified", CERTIFIED, "least")
    yield _within("certified beside cuML alone", certified, _at(notes, "cuml_alone", CUML_ALONE, "least"), _TIMES_CUML)
    sklearn = _at(notes, "peers", SKLEARN, "scaled to all queries, s")
    yield _within("certified beside scikit-learn", certified, sklearn, 1 / _TIMES_SKLEARN)
    wrong = [
        each["wrong queries"]
        for step in ("certified", "million")
        for name, each in notes.get(step, {}).items()
        if name.endswith("against float64") and isinstance(each, Mapping)
    ]
    verdict = "not measured" if not wrong else f"{'met' if not any(wrong) else 'MISSED'}, wrong queries: {sum(wrong)}"
    yield f"every answer equal to float64: {verdict}"


def _within(what: str, ours: float | None, other: float | None, times: float) -> str:
    if ours is None or other is None:
        return f"{what}: not measured"
    said = "met" if ours <= times * other else "MISSED"
    return f"{what}: {said}, {ours:.3f} s and {other:.3f} s, goal {times:g} times"


def _at(notes: Mapping[str, Any], *names: str) -> float | None:
    value: Any = notes
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return float(value) if isinstance(value, int | float) else None
