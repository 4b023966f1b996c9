"""The model card of a chosen classifier, as Markdown: purpose, data, backbone, parameters, measures, limits, use.

Takes the values of metrics.json and run.json; every sentence follows from them. Knows no files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from stages.backbone import catalogue
from stages.backbone.backbone_spec import BackboneSpec
from stages.classify.report import training_words
from stages.datum.text_format import visible
from stages.report import markup

_MOST_EXAMPLES = 5

_SPECIAL = re.compile(r"([\\`*_\[\]<>&|~$@#]|:(?=//))")


def card(metrics: Mapping[str, Any], run: Mapping[str, Any], backbone: BackboneSpec | None) -> str:
    """The card as text for a UTF-8 file. backbone: the description of the run's backbone; None if it is not known."""
    rows = metrics["per_label"]
    return markup.fill(
        "model-card.md",
        metrics=metrics,
        run=run,
        spec=backbone,
        licence="" if backbone is None else _licence(backbone),
        left_out=training_words.left_out(metrics),
        labels=sorted(rows, key=lambda row: str(row["label"])),
        parameters=Markup(json.dumps(run["parameters"], indent=2, sort_keys=True)),
        sides=[metrics["cross_validation"], metrics["held_out"]],
        words=training_words,
        plain=plain,
        named=_named,
        code=_code,
    )


def plain(given: str) -> str:
    """A text that Markdown shows as it is, within a line."""
    escaped = _SPECIAL.sub(r"\\\1", visible(given)).replace("www.", r"www\.")
    return re.sub(r"^([-+=]|\d+[.)])", lambda found: f"{found[0][:-1]}\\{found[0][-1]}", escaped)


def _licence(spec: BackboneSpec) -> str:
    """The licence of weights that the catalogue knows; a user's own model has pooling `own`."""
    entry = catalogue.CATALOGUE.get(spec.name)
    if entry is None or spec.pooling == "own":
        return "not known; ask their origin"
    return f"{entry.licence}, if they are the published ones of {entry.name}"


def _named(labels: Sequence[str], more: str = " and {:,} more") -> str:
    """The first labels, or examples, in Markdown."""
    shown = ", ".join(map(plain, labels[:_MOST_EXAMPLES]))
    return shown + (more.format(len(labels) - _MOST_EXAMPLES) if len(labels) > _MOST_EXAMPLES else "")


def _code(given: str) -> str:
    """A name or a hash as code."""
    return f"`{visible(given).replace('`', chr(0x2CB))}`"
