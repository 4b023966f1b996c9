"""Lists of pictures by URL, and files that hold the pictures themselves, read as they come, whatever their length.

Such a file is a shard of Webdataset's: a tar in which the files of one name are one sample, a picture and what is known
of it. `.json` and `.txt` give attributes, as sidecars beside pictures do, and `.cls` the label. Contacts no server.
"""

import csv
import tarfile
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.errors import LookalikeError
from pipelines.library.attributes import sidecar_files
from pipelines.library.remote.picture_urls import FACTS, LABEL, PictureUrl, is_url, sample_of
from stages.record.file_kinds import has_picture_extension
from stages.record.file_limits import MAX_PICTURE_BYTES
from stages.record.pfs_names import is_system_file
from stages.record.url_names import name_of

_COLUMNS = ("url", "image_url", "imageurl", "uri", "href", "link", "image")
"""The headings of columns of URLs, the likeliest first."""

_NAMES = ("path", "name", "filename", "file_name")
_SEPARATORS = (",", ";", "\t")
_BATCH = 4096
_HELD_BATCH = 32
"""Rows that are read at once, and those that hold pictures."""

_LARGEST_FACT = 1 << 20


class ListProblem(NamedTuple):
    """A line of a list that names no picture, with the reason."""

    line: str
    reason: str


def of_list(path: Path) -> Iterator[PictureUrl | ListProblem]:
    """The pictures of a list, line by line: a URL in each line of .txt; in .csv, .tsv and .parquet a row each, with a
    column of URLs, perhaps one of names (path or name), and others that state what is known of the picture. A .parquet
    may hold the pictures themselves, in a column of bytes and paths as Hugging Face writes it.

    Raises LookalikeError for a file that is no list."""
    try:
        rows = {".txt": _lines, ".parquet": _parquet}.get(path.suffix.lower(), _csv)(path)
        for line, row in enumerate(rows, 1):
            yield _picture(
                row, f"{path.name}, line {line}" if path.suffix != ".parquet" else f"{path.name}, row {line}"
            )
    except OSError as error:
        raise LookalikeError(f"cannot read {path}: {(error.strerror or str(error)).lower()}") from error
    except UnicodeDecodeError as error:
        raise LookalikeError(f"{path} is not UTF-8: save the list as UTF-8") from error
    except pa.ArrowException as error:
        raise LookalikeError(f"{path} is not a Parquet file that can be read: {error}") from error
    except csv.Error as error:
        raise LookalikeError(f"{path} is not valid CSV: {error}") from error


def _picture(row: PictureUrl, line: str) -> PictureUrl | ListProblem:
    """The picture of a row, which has the name that its list gives, "" for none."""
    if row.content is None and not is_url(row.url):
        return ListProblem(line, f"{row.url[:80]!r} is not a URL" if row.url else "it has no URL")
    return row._replace(name=_inside(row.name) or name_of(row.url))


def _inside(path: str) -> str:
    return "/".join(each for each in path.split("/") if each not in ("", ".", ".."))


def _lines(path: Path) -> Iterator[PictureUrl]:
    with path.open(encoding="utf-8-sig") as lines:
        for line in lines:
            text = line.strip()
            if text and not text.startswith("#"):
                yield PictureUrl(text, "")


def _csv(path: Path) -> Iterator[PictureUrl]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        heading = file.readline()
        file.seek(0)
        rows = csv.DictReader(file, delimiter=max(_SEPARATORS, key=heading.count), strict=True)
        names = [each or "" for each in rows.fieldnames or ()]
        url, name = _columns(path, names)
        for row in rows:
            stated = {key: value for key, value in row.items() if key and key not in (url, name) and value}
            yield PictureUrl((row[url] or "").strip(), (row.get(name) or "").strip(), stated)


def _parquet(path: Path) -> Iterator[PictureUrl]:
    with pq.ParquetFile(path) as file:
        schema = file.schema_arrow
        held = next((each.name for each in schema if _holds_files(each.type)), "")
        url, name = ("", "") if held else _columns(path, schema.names)
        number = 0
        for batch in file.iter_batches(_HELD_BATCH if held else _BATCH):
            for row in batch.to_pylist():
                number += 1
                stated = {
                    key: value for key, value in row.items() if key not in (url, name, held) and value is not None
                }
                if not held:
                    yield PictureUrl(str(row[url] or "").strip(), str(row.get(name) or "").strip(), stated)
                    continue
                content = (row[held] or {}).get("bytes")
                named = str((row[held] or {}).get("path") or f"{number:08}")
                row_url = f"{path.name}#{number}" if content else ""
                yield PictureUrl(row_url, f"{path.stem}/{named}", stated, content or None)


def _holds_files(type: pa.DataType) -> bool:
    """Whether values are files with their bytes, as Hugging Face's data sets have them."""
    if not pa.types.is_struct(type) or "bytes" not in type.names:
        return False
    found = type.field("bytes").type
    return bool(pa.types.is_binary(found) or pa.types.is_large_binary(found))


def _columns(path: Path, headings: Sequence[str]) -> tuple[str, str]:
    """The headings of the URLs and of the names, "" for none. Raises LookalikeError without URLs."""
    by_text = {each.strip().lower(): each for each in reversed(headings)}
    found = next((by_text[each] for each in _COLUMNS if each in by_text), None)
    if found is None:
        there = ", ".join(filter(str.strip, headings)) or "none"
        raise LookalikeError(
            f"{path.name} has no column url, so it is not a list of pictures; its columns: {there[:200]}"
        )
    return found, next((by_text[each] for each in _NAMES if each in by_text), "")


def of_shard(argument: str, tar: Path) -> Iterator[PictureUrl | ListProblem]:
    """The pictures of a shard, called by the name of the tar and theirs in it. argument: as the user names the tar.
    Raises LookalikeError for a file that is not a tar."""
    name = unquote(urlsplit(argument).path if is_url(argument) else argument).rpartition("/")[2]
    stem = name[: -next(len(each) for each in (".tar.gz", ".tgz", ".tar") if name.lower().endswith(each))]
    try:
        opened = tarfile.open(tar, "r:*")  # noqa: SIM115  it is closed below
    except (tarfile.TarError, OSError, EOFError) as error:
        raise LookalikeError(f"{argument} is not a tar: {error}") from error
    with opened:
        members = (each for each in opened if each.isfile() and not is_system_file(each.name))
        try:
            for _, sample in groupby(members, key=lambda each: sample_of(each.name)[0]):
                yield from _sample(argument, stem, opened, list(sample))
        except (tarfile.TarError, OSError, EOFError) as error:
            yield ListProblem(argument, f"it is damaged, or cut off: {error}")


def _sample(
    argument: str, stem: str, tar: tarfile.TarFile, members: list[tarfile.TarInfo]
) -> Iterator[PictureUrl | ListProblem]:
    pictures = [each for each in members if has_picture_extension(each.name)]
    attributes: dict[str, Any] = {}
    label = ""
    for each in members:
        suffix = sample_of(each.name)[1]
        if not pictures or suffix not in FACTS:
            continue
        try:
            text = _content(tar, each, _LARGEST_FACT).decode("utf-8-sig")
            if suffix == LABEL:
                label = text.strip()
            else:
                attributes |= sidecar_files.READERS[suffix](text)
        except ValueError as error:
            yield ListProblem(f"{argument}, {each.name}", f"it cannot be read: {error}")
    for each in pictures:
        where = f"{argument}#{each.name}"
        try:
            content = _content(tar, each, MAX_PICTURE_BYTES)
        except ValueError as error:
            yield ListProblem(where, str(error))
            continue
        yield PictureUrl(where, f"{stem}/{_inside(each.name)}", attributes, content, label)


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo, most: int) -> bytes:
    """Raises ValueError if it is too large, tarfile.ReadError if it is cut off."""
    if member.size > most:
        raise ValueError(f"it has more than {most:,} bytes")
    file = tar.extractfile(member)
    content = b"" if file is None else file.read()
    if len(content) < member.size:
        raise tarfile.ReadError(f"{member.name} ends early")
    return content
