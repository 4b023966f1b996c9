"""Labels for selected pictures: which labels they have, and what the change would say of their files.

Knows no HTTP, and not how files of labels are written.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any

from stages.datum.text_format import counted
from stages.record import label_changes
from stages.serving.answer import search_answer
from stages.serving.follow.refusals import Refusal, bad_request
from stages.serving.follow.snapshots import Snapshot

LONGEST_LABEL = 200
"""Characters."""

_EXAMPLES = 6
"""Pictures that are shown of those with the same labels."""

_CONTROL = ("Cc", "Cs", "Zl", "Zp")


def label_text(given: object) -> str | None:
    """The label of a request; None for none. Raises Refusal for what is not valid."""
    if given is None:
        return None
    if not isinstance(given, str) or not (text := given.strip()):
        raise bad_request("the label is empty: send a text, or null to take labels away")
    if len(text) > LONGEST_LABEL or any(unicodedata.category(each) in _CONTROL for each in text):
        raise bad_request(f"a label has at most {LONGEST_LABEL} characters, and no line breaks or control characters")
    return text


def review(
    snapshot: Snapshot, files: label_changes.Files, ids: Sequence[str], label: str | None
) -> tuple[Mapping[str, Any], label_changes.Files]:
    """What it would be to give pictures a label, or to take theirs away, as JSON, with the files of labels that differ
    then. files: those there are. Pictures that the library does not have are counted as absent. Raises Refusal if it
    has none of them, or if nothing would change."""
    library = snapshot.library
    rows = [(id, row) for id in dict.fromkeys(ids) if (row := library.row(id)) is not None]
    if not rows:
        raise Refusal(409, "not-in-library", "the library has none of these pictures any more: select others")
    paths = {id: [each.path for each in library.sources(row)] for id, row in rows}
    changed, touched = label_changes.relabelled(files, {each for some in paths.values() for each in some}, label)
    count = sum(any(each in touched for each in some) for some in paths.values())
    if not count:
        words = "have no label" if label is None else f"have the label {label} already"
        raise Refusal(409, "unchanged", f"these pictures {words}: there is nothing to change")
    known = label_changes.labels_by_source(files)
    labelled = {each for some in known.values() for each in some}
    groups: dict[tuple[str, ...], list[str]] = {}
    for id, some in paths.items():
        groups.setdefault(tuple(sorted({each for path in some for each in known.get(path, ())})), []).append(id)
    pictures = counted(count, "picture", "pictures")
    return {
        "label": label,
        "pictures": count,
        "files": len(touched),
        "absent": len({*ids}) - len(paths),
        "new": label is not None and label not in labelled,
        "similar": sorted(each for each in labelled if label and each != label and each.casefold() == label.casefold()),
        "before": [
            {
                "labels": before,
                "pictures": len(some),
                "examples": [{"path": paths[id][0], **search_answer.addresses(id, 0)} for id in some[:_EXAMPLES]],
            }
            for before, some in sorted(groups.items())
        ],
        "description": f"Remove the labels of {pictures}" if label is None else f'Label {pictures} "{label}"',
    }, changed
