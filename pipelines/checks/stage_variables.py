"""Variables of lookalike's own stages on which several specifications must agree, or whose values cannot be right."""

import math
from collections.abc import Iterator, Sequence

from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.findings import Finding, Flaw
from pipelines.specifications.segment_numbers import DIGITS
from stages.record.part_names import MOST_DIGITS

_ENV = ("transform", "env")
_FAR_FOR_COSINE = 0.4
"""A cosine distance of which few near copies are; a Euclidean one of vectors of length 1 would be 0.89."""

_HASH_BITS = 64
_BACKEND, _USUAL_BACKEND = "KERAS_BACKEND", "tensorflow"
_EMBED = ("features", "serve")
"""The stages that compute vectors: of the library, of queries, of questions to the service."""


def check(drafts: Sequence[SpecDraft], neighbours: Sequence[SpecDraft] = ()) -> Iterator[Finding]:
    """The flaws of the variables of these specifications. `neighbours` complete the set and are not checked
    themselves."""
    everything = {_stage(draft): draft for draft in (*neighbours, *drafts)}
    for draft in drafts:
        if _stage(draft) == "neighbours":
            yield from (draft.finding(flaw) for flaw in (*_check_threshold(draft), *_check_hash_bits(draft)))
            yield from (draft.finding(flaw) for flaw in _check_metric(draft, everything.get("search")))
        elif _stage(draft) == "partition":
            yield from (draft.finding(flaw) for flaw in _check_digits(draft))
    yield from _check_backends(drafts)


def _stage(draft: SpecDraft) -> str:
    """The stage that a specification runs, "" if that is not one of lookalike's."""
    command = [str(word) for word in draft.get("transform", "cmd", default=())]
    return command[2].removeprefix("stages.") if command[1:2] == ["-m"] and len(command) > 2 else ""


def _check_threshold(draft: SpecDraft) -> Iterator[Flaw]:
    at, text = (*_ENV, "THRESHOLD"), _value(draft, "THRESHOLD")
    try:
        threshold = float(text or 0)
    except ValueError:
        threshold = math.nan
    if not 0 <= threshold < math.inf:
        yield Flaw.error("variables", at, f'"{text}" is not a number from 0', "write a distance, such as 0.35")
    elif _value(draft, "METRIC") == "cosine" and threshold > _FAR_FOR_COSINE:
        why = f"{text} is far for METRIC=cosine: pictures with little in common are this near"
        fix = f"for vectors of length 1, {text} with euclidean is {cosine(threshold)} with cosine"
        yield Flaw.warning("variables", at, why, fix)


def _check_hash_bits(draft: SpecDraft) -> Iterator[Flaw]:
    text = _value(draft, "HASH_BITS")
    if text and not (text.isascii() and text.isdecimal() and int(text) <= _HASH_BITS):
        why = f'"{text}" is not a whole number from 0 to {_HASH_BITS}'
        fix = f"write the most bits in which near copies differ; {_HASH_BITS} compares no hashes"
        yield Flaw.error("variables", (*_ENV, "HASH_BITS"), why, fix)


def cosine(threshold: float) -> str:
    """The cosine distance of vectors of length 1 at this Euclidean distance, as text."""
    return f"{threshold**2 / 2:.2g}"


def _check_digits(draft: SpecDraft) -> Iterator[Flaw]:
    text = _value(draft, DIGITS).strip()
    if text and not (text.isascii() and text.isdecimal() and 1 <= int(text) <= MOST_DIGITS):
        why = f'"{text}" is not a whole number from 1 to {MOST_DIGITS}'
        fix = "write the hex digits of an id that make a segment: 1 are 16 segments, 2 are 256"
        yield Flaw.error("variables", (*_ENV, DIGITS), why, fix)


def _check_metric(draft: SpecDraft, search: SpecDraft | None) -> Iterator[Flaw]:
    mine, theirs = (_value(each, "METRIC") if each is not None else "" for each in (draft, search))
    if mine and theirs and mine != theirs:
        why = f"{mine} differs from {theirs} in search: one distance has two meanings"
        yield Flaw.warning("variables", (*_ENV, "METRIC"), why, f"write {theirs}")


def _check_backends(drafts: Sequence[SpecDraft]) -> Iterator[Finding]:
    """Vectors of two backends of Keras are never compared, so a search between them fails. Only specifications that are
    checked together: those beside them may be deployed with an overlay."""
    named = {draft.name: _value(draft, _BACKEND) or _USUAL_BACKEND for draft in drafts if _stage(draft) in _EMBED}
    library = named.get("features", "")
    for draft in drafts:
        mine = named.get(draft.name, library)
        if library and mine != library:
            why = f"{mine} computes queries and {library} the library: vectors of two backends are not compared"
            fix = f"write one {_BACKEND} for both, such as {library}; the overlay keras-backend does"
            yield draft.finding(Flaw.error("variables", (*_ENV, _BACKEND), why, fix))


def _value(draft: SpecDraft, name: str) -> str:
    return str(draft.get(*_ENV, name, default=""))
