"""Lists of pictures by URL, and files that hold the pictures themselves, read as they come, whatever their length.
Contacts no server."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.errors import LookalikeError
from pipelines.library.remote.picture_urls import PictureUrl, is_url
from stages.record.url_names import name_of

_COLUMNS = ("url", "image_url", "imageurl", "uri", "href", "link", "image")
"""The headings of columns of URLs, the likeliest first."""

_NAMES = ("path", "name", "filename", "file_name")
_SEPARATORS = (",", ";", "\t")
_BATCH = 4096
_HELD_BATCH = 32
"""Rows that are read at once, and those that hold pictures."""


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


class _Row(NamedTuple):
    url: str
    name: str
    attributes: Mapping[str, Any]
    content: bytes | None = None


def _picture(row: _Row, line: str) -> PictureUrl | ListProblem:
    if row.content is None and not is_url(row.url):
        return ListProblem(line, f"{row.url[:80]!r} is not a URL" if row.url else "it has no URL")
    name = "/".join(each for each in row.name.split("/") if each not in ("", ".", ".."))
    return PictureUrl(row.url, name or name_of(row.url), row.attributes, row.content)


def _lines(path: Path) -> Iterator[_Row]:
    with path.open(encoding="utf-8-sig") as lines:
        for line in lines:
            text = line.strip()
            if text and not text.startswith("#"):
                yield _Row(text, "", {})


def _csv(path: Path) -> Iterator[_Row]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        heading = file.readline()
        file.seek(0)
        rows = csv.DictReader(file, delimiter=max(_SEPARATORS, key=heading.count), strict=True)
        names = [each or "" for each in rows.fieldnames or ()]
        url, name = _columns(path, names)
        for row in rows:
            stated = {key: value for key, value in row.items() if key and key not in (url, name) and value}
            yield _Row((row[url] or "").strip(), (row.get(name) or "").strip(), stated)


def _parquet(path: Path) -> Iterator[_Row]:
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
                    yield _Row(str(row[url] or "").strip(), str(row.get(name) or "").strip(), stated)
                    continue
                content = (row[held] or {}).get("bytes")
                named = str((row[held] or {}).get("path") or f"{number:08}")
                yield _Row(f"{path.name}#{number}" if content else "", f"{path.stem}/{named}", stated, content or None)


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
