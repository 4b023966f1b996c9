"""Labels for pictures that are to be added: those of files, or the folder of each picture, also in archives.

Knows files on this machine and the names that they get in the library; contacts no server.
"""

import hashlib
import os
import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from pipelines.errors import LookalikeError
from pipelines.library import idx_files, picture_hashes
from pipelines.library.picture_sources import PictureSource, PictureSources, folder_name
from stages.decode.archives.archive_member import ArchiveMember, BadArchive, BadMember
from stages.decode.archives.archive_reader import members
from stages.files import blocks
from stages.record.file_kinds import HEAD, kind_of
from stages.record.file_limits import LIMITS
from stages.record.label_files import LabelRow, LineProblem, can_be_written, format_csv, read
from stages.record.pfs_names import is_system_file

LABELS_FILE = "labels.csv"
"""The name of a file in a folder that labels the pictures of this folder, in place of the folders' names."""

_SLUG = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_SLUG = 40
_DIGITS = 8
_PIECE = 1 << 20


@dataclass(slots=True)
class LabelPlan:
    """The pictures to put and the labels for them.

    sources: without files of labels. pictures: those in each of these by name, with the SHA-256 of their bytes, "" for
    damaged ones. files: the rows of each file to put into `labels`, by its name there. of: the label of each picture
    that has one. unlabelled: the pictures without one. elsewhere: the sources in files of labels that are not among the
    pictures. problems: lines that give no label, in words.
    """

    sources: list[PictureSource] = field(default_factory=list)
    pictures: dict[str, dict[str, str]] = field(default_factory=dict)
    files: dict[str, list[LabelRow]] = field(default_factory=dict)
    of: dict[str, str] = field(default_factory=dict)
    unlabelled: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def contents(self) -> dict[str, bytes]:
        """The content of each file to put."""
        return {name: format_csv(rows) for name, rows in self.files.items()}

    def without(self, names: Set[str]) -> "LabelPlan":
        """The plan with the pictures of these names not counted."""
        of = {name: label for name, label in self.of.items() if name not in names}
        return replace(self, of=of, unlabelled=[name for name in self.unlabelled if name not in names])


def plan(arguments: Sequence[Path], found: PictureSources, files: Sequence[Path] = ()) -> LabelPlan:
    """The labels of the pictures that arguments stand for (`found`, see library.pictures).

    files: CSV files with the labels; without any, a file labels.csv labels the pictures of its folder, those of a file
    in the IDX format have the labels in the file that belongs to it, and all others have the name of their folder as
    label. Raises LookalikeError if a file cannot be read, or if there is no label.
    """
    made = LabelPlan()
    given = {each.name: each for each in found.sources}
    own = {} if files else {name: each for name, each in given.items() if PurePosixPath(name).name == LABELS_FILE}
    made.sources = [each for name, each in given.items() if name not in own]
    made.pictures = {source.name: dict(_pictures_of(source)) for source in made.sources}
    names = {name for each in made.pictures.values() for name in each}
    tops = [folder_name(each) for each in arguments if each.is_dir()] + [each.name for each in made.sources]
    for path in files:
        rows = _read(made, path, [*dict.fromkeys(tops)], names)
        made.files[file_name(path)] = rows
    for argument in () if files else arguments:
        rows = []
        for source in (each for each in own.values() if _belongs(each, argument)):
            rows += _read(made, source.path, [_parent(source.name)], names)
        for file, pictures in found.idx.items():
            if _belongs(file, argument):
                labels = enumerate(idx_files.labels(pictures, found.idx_labels))
                rows += [LabelRow(f"{file.name}/{pictures.name(number)}", label) for number, label in labels]
        homes = (*(_parent(each.name) for each in own.values()), *(each.name for each in found.idx))
        for source in (each for each in made.sources if _belongs(each, argument)):
            rows += _from_folders(source, [*made.pictures[source.name]], homes)
        if rows:
            made.files[file_name(argument)] = rows
    made.of = {row.source: row.label for rows in made.files.values() for row in rows if row.source in names}
    made.unlabelled = sorted(names - made.of.keys())
    made.elsewhere = sorted({row.source for rows in made.files.values() for row in rows} - names)
    if not any(made.files.values()):
        raise _none(made, bool(files))
    return made


def file_name(path: Path) -> str:
    """The name in the repo `labels` of the labels from a file or folder on this machine: the same for the same one,
    and another one for any other of this name."""
    whole = path.resolve()
    slug = _SLUG.sub("-", whole.stem if path.is_file() else whole.name).strip("-.")[:_LONGEST_SLUG] or "labels"
    return f"{slug}-{hashlib.sha256(os.fsencode(whole)).hexdigest()[:_DIGITS]}.csv"


def _none(made: LabelPlan, by_files: bool) -> LookalikeError:
    if made.problems:
        return LookalikeError(f"there is no label, so nothing was put: {made.problems[0]}")
    if by_files:
        return LookalikeError("the file has no labels, only a header, so nothing was put: add a line for each picture")
    return LookalikeError(
        "there is no label, so nothing was put: put the pictures into folders with the names of their labels and add "
        f"the folder above, or name a file with the columns source and label (--labels, or {LABELS_FILE} in the folder)"
    )


def _belongs(source: PictureSource, argument: Path) -> bool:
    """Whether a source was found for an argument."""
    if not argument.is_dir():
        return source.path == argument
    top = folder_name(argument)
    return source.path.is_relative_to(argument) and (not top or source.name.startswith(f"{top}/"))


def _parent(name: str) -> str:
    """The folder of a true name, "" for a name without one."""
    return name.rpartition("/")[0]


def _pictures_of(source: PictureSource) -> Iterator[tuple[str, str]]:
    """The pictures in a file by true name, its own or an archive's members, with the SHA-256 of their bytes. None of a
    file that cannot be read, which the put reports."""
    try:
        kind = kind_of(source.head())
        if kind.is_picture:
            yield source.name, picture_hashes.digest(blocks.content(source.span))
        if not kind.is_archive:
            return
        for each in members(source.path, kind, LIMITS):
            if not is_system_file(each.name) and (digest := _digest(each)) is not None:
                yield f"{source.name}/{each.name}", digest
    except (OSError, BadArchive):
        return


def _digest(member: ArchiveMember) -> str | None:
    """The SHA-256 of a picture, "" if it is damaged; None for other members."""
    digest = None
    try:
        while member.stream is not None and (piece := member.stream.read(_PIECE)):
            if digest is None and not kind_of(piece[:HEAD]).is_picture:
                return None
            digest = digest or hashlib.sha256()
            digest.update(piece)
    except BadMember:
        return None if digest is None else ""
    return None if digest is None else digest.hexdigest()


def _from_folders(source: PictureSource, pictures: Sequence[str], homes: Sequence[str]) -> Iterator[LabelRow]:
    """The pictures of a file with the names of their folders as labels, but for those in folders that have a file of
    labels. An archive is not a folder: what lies at its top has the label of the folder that the archive is in."""
    if any(not home or source.name.startswith(f"{home}/") for home in homes):
        return
    above = PurePosixPath(source.name).parent.name
    for name in pictures:
        label = (above if _parent(name) == source.name else PurePosixPath(name).parent.name).strip()
        row = LabelRow(name, label)
        if label and can_be_written(row):
            yield row


def _read(made: LabelPlan, path: Path, tops: Sequence[str], names: set[str]) -> list[LabelRow]:
    """The labels in a file on this machine. A source may be named as in the library or from one of the folders `tops`
    on; it becomes the name in the library."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise LookalikeError(f"{path} cannot be read: {error.strerror or error}") from error
    rows = []
    for each in read(path.name, content):
        if isinstance(each, LineProblem):
            made.problems.append(each.said)
            continue
        source = each.source.removeprefix("./")
        longer = (f"{top}/{source}" if top else source for top in tops)
        rows.append(
            LabelRow(
                source if source in names else next((name for name in longer if name in names), source), each.label
            )
        )
    return rows
