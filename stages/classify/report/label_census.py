"""The labelled pictures in numbers, with all that was left out of a training: what the stage labelled wrote, and the
labels themselves.

Reads one table after the other, so that their thumbnails are not all in memory. Knows no network.
"""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stages.classify.training import splits
from stages.classify.training.dataset import FEWEST
from stages.datum.contract import StageError, spool
from stages.files.tables.label_table import LabelTable
from stages.quality.picture_labels import SAMPLE, unused
from stages.record.label_files import SourceLabels

LEFT_OUT = "left_out"

_AGAIN = "write it again with `lookalike deploy --reprocess labelled`"


@dataclass
class LabelCensus:
    """The labelled pictures of all segments.

    training, held_out: pictures by label. seen: the labelled sources of pictures. mixed: pictures whose sources have
    different labels, with `mixed_examples`, SAMPLE of each segment at most. thumbnails: JPEG files of the pictures that
    were asked for, by id.
    """

    training: Counter[str] = field(default_factory=Counter)
    held_out: Counter[str] = field(default_factory=Counter)
    seen: set[str] = field(default_factory=set)
    mixed: int = 0
    mixed_examples: list[str] = field(default_factory=list)
    thumbnails: dict[str, bytes] = field(default_factory=dict)

    def pictures(self) -> dict[str, int]:
        """The labelled pictures: all, those of labels that can be learnt by their side, and those of other labels."""
        learnt = self.learnable()
        sides = {
            name: sum(number for label, number in of.items() if label in learnt)
            for name, of in (("training", self.training), ("held_out", self.held_out))
        }
        labelled = self.training.total() + self.held_out.total()
        return {"labelled": labelled, **sides, "unlearnable": labelled - sum(sides.values())}

    def learnable(self) -> set[str]:
        """The labels that can be learnt."""
        return {label for label, number in self.training.items() if number >= FEWEST}

    def left_out(self, labels: SourceLabels) -> dict[str, Any]:
        """All that gives no training picture, in numbers and examples, as JSON values; of the labels that cannot be
        learnt, all."""
        learnt = self.learnable()
        few = sorted((self.training.keys() | self.held_out.keys()) - learnt)
        return {
            **unused(labels, self.seen),
            "mixed": {"count": self.mixed, "examples": sorted(self.mixed_examples)[:SAMPLE]},
            "unlearnable": {
                "count": len(few),
                "examples": [
                    {"label": label, "training": self.training[label], "held_out": self.held_out[label]}
                    for label in few
                ],
            },
        }

    def add(self, table: LabelTable, told: Mapping[str, Any], wanted: Collection[str]) -> None:
        """Counts a segment. told: the values of /left_out/<segment>.json."""
        for id, label in zip(table.ids, table.labels, strict=True):
            (self.held_out if splits.held_out(id, table.held_out) else self.training)[label] += 1
        self.seen.update(table.sources, told["others"])
        self.mixed += told["mixed"]["count"]
        self.mixed_examples += told["mixed"]["examples"]
        self.thumbnails |= {id: table.thumbnails[row] for row, id in enumerate(table.ids) if id in wanted}


def read(labelled: Path, wanted: Collection[str] = ()) -> LabelCensus:
    """The census of a directory that the stage labelled wrote, with the thumbnails of the pictures with these ids. Its
    files may be pipes; vectors are not read. Raises StageError if a segment lacks a file."""
    found = LabelCensus()
    for file in sorted(labelled.glob("*.parquet")):
        beside = labelled / LEFT_OUT / f"{file.stem}.json"
        if not beside.exists():
            raise StageError(f"labelled has no {LEFT_OUT}/{beside.name}: {_AGAIN}")
        with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
            table = LabelTable.read(spool(file, Path(scratch)))
        found.add(table, json.loads(beside.read_bytes()), wanted)
    return found
