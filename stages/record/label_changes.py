"""Labels that a person gives to pictures, as changes of the files of labels: the rows that say otherwise go, wherever
they are, and a file of its own says the new label. All other bytes of the files stay.

Only the standard library. Knows no repo: files are contents by name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

from stages.record.label_files import LabelRow, format_csv, is_for_training, read, without

OWN_FILE = "labelled-on-the-page.csv"
"""The file of the labels that are given by hand."""

Files = Mapping[str, bytes]


def labels_by_source(files: Files) -> dict[str, set[str]]:
    """All labels that files give to each source, also those for evaluation alone."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for name, content in files.items():
        for row in _rows(name, content):
            found[row.source].add(row.label)
    return found


def relabelled(files: Files, sources: Collection[str], label: str | None) -> tuple[Files, Collection[str]]:
    """The files that differ once these sources have this label to train on, and no other one in any file, and the
    sources whose rows differ. label: None takes all of theirs away."""
    wanted, touched, said = {*sources}, set[str](), set[str]()

    def goes(row: LabelRow) -> bool:
        return row.source in wanted and row.label != label

    changed: dict[str, bytes] = {}
    for name, content in files.items():
        rows = [*_rows(name, content)]
        if gone := {row.source for row in rows if goes(row)}:
            changed[name] = without(name, content, goes)
            touched |= gone
        if is_for_training(name):
            said |= {row.source for row in rows if row.label == label}
    if label is not None and (new := wanted - said):
        kept = _rows(OWN_FILE, changed.get(OWN_FILE, files.get(OWN_FILE, b"")))
        changed[OWN_FILE] = format_csv(sorted({*kept, *(LabelRow(each, label) for each in new)}))
        touched |= new
    return changed, touched


def _rows(name: str, content: bytes) -> Iterator[LabelRow]:
    return (each for each in read(name, content) if isinstance(each, LabelRow))
