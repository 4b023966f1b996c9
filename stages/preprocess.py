"""The preprocess stage: one file, block, archive or directory in, packs of normalised pictures and rejections out.

The output depends on the datum's content and path alone, so the same datum always gives the same bytes.
"""

from __future__ import annotations

if __name__ == "__main__":  # before any import that can fail: see stages.datum.contract
    from stages.datum import contract

    raise SystemExit(contract.run("stages.preprocess"))

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from stages.datum.contract import Datum, DatumInput, StageError, load
from stages.datum.progress import Progress
from stages.datum.stage_parameters import integer, one_of
from stages.decode.decoder_processes import DecoderProcesses
from stages.decode.distinct_pictures import DistinctPictures
from stages.decode.picture_reader import DecodedPicture, files_of, read
from stages.decode.recorded_pictures import Fetch
from stages.files import pack_tables, thumbnail_files
from stages.files.packs import PackPicture, Rejection, write_pack, write_rejections
from stages.record import part_names
from stages.record.framing import FITS, Framing
from stages.record.pfs_names import QUESTION_FILE, is_text, unescape

VERSION = 18
"""Version of the stage's output, equal to LOOKALIKE_STAGE in its specifications. See CONTRIBUTING.md."""

STAGE = "preprocess"

if TYPE_CHECKING:  # few entries have words or a question
    from stages.filters.entry_question import EntryQuestion


def start(environment: Mapping[str, str]) -> PreprocessStage:
    """Reads IMAGE_SIZE (pixels a side, 224), FIT (pad or crop), PART (about how many of a datum's pictures make a part,
    400) and FETCH_FROM (networks that may be asked for pictures though they are not public)."""
    side = integer(environment, "IMAGE_SIZE", default=224, lowest=8, highest=1024)
    return PreprocessStage(
        Framing(side, one_of(environment, "FIT", FITS)),
        part=integer(environment, part_names.VARIABLE, default=part_names.PART, lowest=1, highest=part_names.MOST),
        fetch=_fetching(environment),
    )


class PreprocessStage:
    """Processes one datum whose input is named `images` (the library's) or `queries`.

    images: packs `/library/<part>/<src>.pack` with their thumbnails, `/thumbnails/<bucket>/<part>/<src>.thumbnails`,
    bucket being two levels (stages.record.part_names.directory); beside these `<sha256>.thumbnails`, the thumbnail of a
    further source with these bytes of a picture, if it is another one; if something was rejected,
    `/rejected/images/<src>.jsonl`. queries: the pack `/queries/<entry>/<src>.pack` with all pictures, even if none, and
    `<src>.thumbnails` beside it; if something was rejected, `/queries/<entry>/<src>.rejected.jsonl` and
    `/rejected/queries/<src>.jsonl`; for an entry with a question.json (stages.files.question) `<src>.question.json`, or
    no pictures if the pipelines cannot answer it; for one with texts, in .txt files or in its question,
    `<src>.texts.jsonl` (stages.files.query_texts). src: 16 hex digits of the sha256 of the datum's path in its repo,
    since no two datums may write to one path.

    features computes one part at a time. Each datum has parts of its own, about one for each `part` pictures, so that
    pictures added or removed later do not compute them again.
    """

    def __init__(self, framing: Framing, part: int = part_names.PART, fetch: Fetch | None = None) -> None:
        """part: about how many pictures make a part. fetch: gives the library's pictures of records."""
        self._fetch = fetch
        self._decoders = DecoderProcesses()
        self.framing = framing
        self.part = part

    def __call__(self, datum: Datum) -> None:
        """Raises StageError if the spec's input is wrong, or if a picture of a record cannot be fetched, as that may
        succeed later. No file that a user puts makes a datum fail."""
        given = _only_input(datum)
        src = part_names.source_name(given.repo_path)
        asked = _entry_question(given)
        rejections = [] if asked is None else asked.rejections(STAGE)
        left_out = () if asked is None else asked.files
        refused = asked is not None and asked.refused
        fetch = self._fetch if given.name == "images" else None
        with DistinctPictures() as distinct:
            progress = Progress("pictures", _files(given))
            for each in () if refused else read(given, self.framing, self._decoders, without=left_out, fetch=fetch):
                progress.add()
                if isinstance(each, DecodedPicture):
                    distinct.add(each.source, each.framed, each.coded, each.thumbnail, each.identity)
                else:
                    rejections.append(Rejection(each.path, STAGE, each.reason))
            if given.name == "images":
                self._write_library(distinct, datum.out, src)
            else:
                entry = datum.out / "queries" / _entry(given)
                self._write_entry(distinct, rejections, entry, src)
                if asked is not None:
                    asked.write(entry, src)
        if rejections:
            write_rejections(datum.out / "rejected" / given.name / f"{src}.jsonl", rejections)
        print(f"{STAGE}: {len(distinct)} pictures, {len(rejections)} rejected")

    def _write_library(self, distinct: DistinctPictures, out: Path, src: str) -> None:
        for prefix, members in distinct.by_prefix(part_names.digits(len(distinct), self.part)):
            part = part_names.name(src, prefix)
            shown = out / thumbnail_files.DIRECTORY / part_names.directory(part) / part
            self._write_pack(distinct, members, out / "library" / part / src, shown / src)
            for sha256, thumbnail in distinct.further_thumbnails(members):
                thumbnail_files.write(shown / f"{sha256}{thumbnail_files.SUFFIX}", [thumbnail])

    def _write_entry(self, distinct: DistinctPictures, rejections: list[Rejection], entry: Path, src: str) -> None:
        self._write_pack(distinct, distinct.pictures(), entry / src, entry / src)
        if rejections:
            write_rejections(entry / f"{src}.rejected.jsonl", rejections)

    def _write_pack(self, distinct: DistinctPictures, members: Sequence[PackPicture], pack: Path, shown: Path) -> None:
        write_pack(pack.with_suffix(pack_tables.SUFFIX), self.framing, members, distinct.coded(members))
        thumbnail_files.write(shown.with_suffix(thumbnail_files.SUFFIX), distinct.thumbnails(members))


def _fetching(environment: Mapping[str, str]) -> Fetch:
    """Fetches pictures of records. Most libraries have none, so nothing is imported before the first one."""
    opened: Callable[[], Fetch] = cache(lambda: load("stages.files.remote_files").originals(environment))
    return lambda record: opened()(record)


def _files(given: DatumInput) -> int | None:
    """The number of files in a directory, None for a file: it may be an archive."""
    return sum(len(files) for *_, files in os.walk(given.path)) if given.path.is_dir() else None


def _entry_question(given: DatumInput) -> EntryQuestion | None:
    """What a query entry asks beside its pictures; None where that is nothing, as in the library."""
    if given.name != "queries":
        return None
    question = _question_file(given)
    true = "" if question is None else unescape(f"{given.repo_path}/{question.relative_to(given.path)}")
    words = {path: unescape(name) for name, path in files_of(given) if is_text(name) and path.is_file()}
    if question is None and not words:
        return None
    asked: EntryQuestion = load("stages.filters.entry_question").read_words(
        None if question is None else (question, true), words
    )
    return asked


def _question_file(given: DatumInput) -> Path | None:
    """What is asked about the pictures of a query entry, if that is put with them. The name of an entry that is too
    long for one component continues in the directories below."""
    directory, name = given.path, given.repo_path
    while name.endswith("%") and directory.is_dir() and len(below := list(directory.iterdir())) == 1:
        directory, name = below[0], below[0].name
    file = directory / QUESTION_FILE
    return file if file.is_file() else None


def _only_input(datum: Datum) -> DatumInput:
    given = [each for name, each in datum.inputs.items() if name in ("images", "queries")]
    if len(given) != 1:
        raise StageError(
            f"preprocess needs one input, named images or queries; this datum has {', '.join(datum.inputs) or 'none'}"
        )
    return given[0]


def _entry(given: DatumInput) -> str:
    entry = given.repo_path.partition("/")[0]
    if not entry:
        raise StageError('a query is one top-level entry: the input\'s glob must be "/*", not "/"')
    return entry
