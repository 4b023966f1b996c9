"""The preprocess stage: one file, block, archive or directory in, packs of normalised pictures and rejections out.

Writes what depends on the datum's content and path alone, so that the same datum always gives the same bytes.
"""

from __future__ import annotations

if __name__ == "__main__":  # before any import that can fail: see stages.contract
    from stages import contract

    raise SystemExit(contract.run("stages.preprocess"))

import hashlib
from collections.abc import Mapping
from pathlib import Path

from stages.contract import Datum, Input, StageError
from stages.gathering import Gathering
from stages.packs import Rejection, write_pack, write_rejections
from stages.parameters import whole
from stages.reading import Found, read

STAGE = "preprocess"

PART = 400
"""About how many pictures make a part: as many as a block of `lookalike add` holds, and whole batches of a model's."""

_BUCKET_DIGITS = 4  # of an id: they decide on its bucket


def start(environment: Mapping[str, str]) -> Preprocess:
    """Reads IMAGE_SIZE (pixels a side, 96) and BUCKETS (how many parts lone pictures are dealt to, 64)."""
    return Preprocess(
        side=whole(environment, "IMAGE_SIZE", default=96, lowest=8, highest=1024),
        buckets=whole(environment, "BUCKETS", default=64, lowest=1, highest=16**_BUCKET_DIGITS),
    )


class Preprocess:
    """Processes one datum whose input is named `images` (the library's) or `queries`.

    images: packs `/library/<part>/<src>.npy`; if something was rejected, `/rejected/images/<src>.jsonl`. queries: the
    pack `/queries/<entry>/<src>.npy` with all pictures, even if none; if something was rejected,
    `/queries/<entry>/<src>.rejected.jsonl` and `/rejected/queries/<src>.jsonl`. src: 16 hex digits of the sha256 of the
    datum's path in its repo, since no two datums may write one path.

    A part is what features computes at once. A lone picture shares one with the other lone ones of its bucket, which
    follows from its id, since a part of one picture costs a whole batch. Several pictures of one datum are a part
    of their own, or about one for each PART of them: what is added later must not compute them again.
    """

    def __init__(self, side: int, buckets: int) -> None:
        self.side = side
        self.buckets = buckets

    def __call__(self, datum: Datum) -> None:
        """Raises StageError for an input that the spec got wrong; nothing that a user puts makes a datum fail."""
        given = _only_input(datum)
        src = hashlib.sha256(given.repo_path.encode("utf-8", "surrogateescape")).hexdigest()[:16]
        rejections: list[Rejection] = []
        with Gathering(self.side) as gathering:
            for each in read(given, self.side):
                if isinstance(each, Found):
                    gathering.add(each.source, each.pixels)
                else:
                    rejections.append(Rejection(each.path, STAGE, each.reason))
            if given.name == "images":
                self._write_library(gathering, datum.out / "library", src)
            else:
                self._write_entry(gathering, rejections, datum.out / "queries" / _entry(given), src)
        if rejections:
            write_rejections(datum.out / "rejected" / given.name / f"{src}.jsonl", rejections)
        print(f"{STAGE}: {len(gathering)} pictures, {len(rejections)} rejected")

    def _write_library(self, gathering: Gathering, library: Path, src: str) -> None:
        lone = len(gathering) == 1
        for prefix, members in gathering.by_prefix(_digits(len(gathering))):
            part = _bucket(members[0].id, self.buckets) if lone else "-".join(filter(None, (src, prefix)))
            write_pack(library / part / f"{src}.npy", (self.side, self.side), members, gathering.rows(members))

    def _write_entry(self, gathering: Gathering, rejections: list[Rejection], entry: Path, src: str) -> None:
        members = gathering.pictures()
        write_pack(entry / f"{src}.npy", (self.side, self.side), members, gathering.rows(members))
        if rejections:
            write_rejections(entry / f"{src}.rejected.jsonl", rejections)


def _bucket(picture: str, buckets: int) -> str:
    """The bucket of an id, in hex digits: each has an equal range of the ids."""
    number = int(picture[:_BUCKET_DIGITS], 16) * buckets // 16**_BUCKET_DIGITS
    return f"{number:0{len(f'{buckets - 1:x}')}x}"


def _digits(pictures: int) -> int:
    """By how many hex digits that many pictures are divided into parts."""
    return next(digits for digits in range(16) if pictures <= PART * 16**digits)


def _only_input(datum: Datum) -> Input:
    found = [each for name, each in datum.inputs.items() if name in ("images", "queries")]
    if len(found) != 1:
        raise StageError(
            f"preprocess has one input, named images or queries; this datum has {', '.join(datum.inputs) or 'none'}"
        )
    return found[0]


def _entry(given: Input) -> str:
    entry = given.repo_path.partition("/")[0]
    if not entry:
        raise StageError('a query is one top-level entry: the input\'s glob must be "/*", not "/"')
    return entry
