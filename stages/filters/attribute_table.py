"""The attributes of pictures as columns, a row for each file: facts of the file, of its picture, and what people say.

A fact that `Source` or `PictureTable` gets is a column here without further mention. Columns are made when they are
first asked for, and kept: a library of a million pictures is opened without them. Knows no filter.
"""

from __future__ import annotations

import difflib
import math
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stages.files.tables.columns import SOURCES, ArrowColumn, SourceColumn
from stages.files.tables.image_table import PictureTable
from stages.files.tables.parquet import stored_text
from stages.files.tables.table import stated_columns
from stages.knn.backend import Mask, Rows
from stages.record.attribute_schema import DERIVED, TEXT
from stages.record.sources import Source

Kind = Literal["text", "number", "boolean", "date"]

SECONDS = pa.timestamp("s")
"""Dates are of cameras and people: naive, in seconds."""


class KindFacts(NamedTuple):
    """A kind of values in words, and the type of its scalars."""

    words: str
    type: pa.DataType


KINDS: Mapping[str, KindFacts] = {
    "text": KindFacts("a text", pa.string()),
    "number": KindFacts("a number", pa.float64()),
    "boolean": KindFacts("true or false", pa.bool_()),
    "date": KindFacts("a date", SECONDS),
    "nothing": KindFacts("NULL", pa.null()),
}
"""The kinds of values, and of NULL."""

_DATES = frozenset({"taken"})
"""Fields of sources that hold dates, as texts."""

_SAMPLE, _DISTINCT = 4096, 0.5
"""A column with more than this share of distinct texts among so many keeps them as they are."""


@dataclass(frozen=True)
class Attribute:
    """A column of a table of attributes. of: what has it, a file or a picture; people's are of files."""

    name: str
    kind: Kind
    of: Literal["file", "picture"]


def _kind(type: pa.DataType) -> Kind | None:
    """The kind of a type of Arrow's; None for one that filters cannot use."""
    if pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_dictionary(type):
        return "text"
    if pa.types.is_integer(type) or pa.types.is_floating(type):
        return "number"
    if pa.types.is_timestamp(type) or pa.types.is_date(type):
        return "date"
    return "boolean" if pa.types.is_boolean(type) else None


_FACTS = {each.name: field for field, each in stated_columns(PictureTable).items()}
"""The fields of PictureTable that hold columns, by the columns' names."""


def _built_in() -> dict[str, Attribute]:
    """Where a name occurs twice, a fact of the file goes first."""
    types = {each.name: each.type for each in stated_columns(PictureTable).values()}
    pictures = {name: Attribute(name, kind, "picture") for name, type in types.items() if (kind := _kind(type))}
    files = {
        each.name: Attribute(each.name, "date" if each.name in _DATES else kind, "file")
        for each in SOURCES.value_type
        if (kind := _kind(each.type))
    }
    derived = {name: Attribute(name, "text" if type == TEXT else "number", "file") for name, type in DERIVED.items()}
    return pictures | derived | files


BUILT_IN: Mapping[str, Attribute] = _built_in()
"""The columns that every library has. People's columns of these names are not seen."""

_OF_SOURCES = frozenset((*SOURCES.value_type.names, *DERIVED, "id"))
"""Columns that say what a source and its picture say themselves."""

_TRAITS = frozenset(name for name, each in BUILT_IN.items() if each.of == "picture") - _OF_SOURCES
"""Columns that say what the picture's pixels say."""


@dataclass(frozen=True)
class AttributeSegment:
    """What a segment knows of its pictures. annotations: sorted by their column `path`; None where people say
    nothing."""

    pictures: PictureTable
    annotations: pa.Table | None = None


class AttributeTable:
    """The attributes of n pictures, which have m files. May be used from several threads.

    rows: int64 (m,), ascending, the picture of each file. columns: by name.
    """

    def __init__(self, segments: Sequence[AttributeSegment]) -> None:
        """segments: at least one, in the order of their pictures."""
        self._segments = segments
        self._sources = [SourceColumn.of(each.pictures.sources) for each in segments]
        counts = np.concatenate([each.counts for each in self._sources])
        self.pictures = len(counts)
        self.rows: Rows = np.repeat(np.arange(self.pictures), counts)
        self._starts = np.cumsum([0, *map(len, self._sources)]).tolist()
        people = annotated_columns(each.annotations.schema for each in segments if each.annotations is not None)
        self.columns: Mapping[str, Attribute] = {**people, **BUILT_IN}
        self._made: dict[str, Any] = {}
        self._making = threading.RLock()

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> Any:
        """A column as Arrow's array, or array in chunks, of m values: texts, as a dictionary if they repeat, int64,
        float64, booleans, or dates in seconds. What is not known is null. Raises KeyError."""
        attribute = self.columns[name]
        with self._making:
            if name not in self._made:
                self._made[name] = _settled(self._read(attribute), name)
            return self._made[name]

    def facts(self, row: int, sources: Sequence[Source]) -> list[dict[str, Any]]:
        """What is known of each file of a picture beside the fields of its source, in JSON's types. sources: its own.
        Makes no column: answers need few pictures of a library."""
        number = bisect_right(self._starts, row) - 1
        segment, at = self._segments[number], row - self._starts[number]
        of_picture = {name: getattr(segment.pictures, field)[at] for name, field in _FACTS.items() if name in _TRAITS}
        found = []
        for source in sources:
            known = {**_annotations_of(segment.annotations, stored_text(source.path)), **of_picture}
            plain = ((name, _plain(known.get(name))) for name in self.columns if name not in _OF_SOURCES)
            found.append({name: value for name, value in plain if value is not None})
        return found

    def pictures_of(self, files: Mask) -> Mask:
        """The pictures with one of these files, bool (n,). files: bool (m,)."""
        found = np.zeros(self.pictures, np.bool_)
        found[self.rows[files]] = True
        return found

    def _read(self, attribute: Attribute) -> Any:
        name = attribute.name
        if name in SOURCES.value_type.names:
            fields = [each.stored.flatten().field(name) for each in self._sources]
            return _joined(fields, _stored_type(SOURCES.value_type.field(name).type))
        if name == "aspect":
            width, height = (self.column(each).cast(pa.float64()) for each in ("width", "height"))
            return pc.divide(width, height)
        if name == "anywhere":
            texts = [decoded(self.column(each)) for each in self._read_by_people]
            return pc.binary_join_element_wise(*texts, "\n", null_handling="skip")
        if name in DERIVED:
            paths = _joined([each.stored_paths for each in self._sources], pa.string())
            return pc.replace_substring_regex(paths, "/?[^/]*$" if name == "folder" else "^(?s:.*)/", "")
        if attribute.of == "picture":
            held = [getattr(each.pictures, _FACTS[name]) for each in self._segments]
            arrays = [each.stored if isinstance(each, ArrowColumn) else pa.array(each) for each in held]
            values = _joined(arrays, _stored_type(arrays[0].type))
            return values if len(self) == self.pictures else pc.take(values, pa.array(self.rows))
        said = [each.annotations for each in self._segments]
        found = [
            pa.nulls(len(files))
            if each is None or name not in each.column_names
            else pc.take(each[name].combine_chunks(), files)
            for each, files in zip(said, self._annotated, strict=True)
        ]
        return _joined(found, next(_stored_type(each.type) for each in found if not pa.types.is_null(each.type)))

    @property
    def _read_by_people(self) -> list[str]:
        """The path, and what cameras and people say of a file in texts."""
        people = [each.name for each in self.columns.values() if each.kind == "text" and each.name not in BUILT_IN]
        return ["path", "camera", "lens", *sorted(people)]

    @cached_property
    def _annotated(self) -> list[Any]:
        """For each segment the row of each file's annotations, or null."""
        none = pa.array([], pa.string())
        paths = [
            none if each.annotations is None else each.annotations["path"].combine_chunks() for each in self._segments
        ]
        return [pc.index_in(each.stored_paths, some) for each, some in zip(self._sources, paths, strict=True)]


def _plain(value: Any) -> Any:
    """A value in JSON's types, None for what stands for nothing: see `_settled`."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, datetime):
        return plain.isoformat()
    return None if plain == "" or (isinstance(plain, float) and not math.isfinite(plain)) else plain


def _annotations_of(annotations: pa.Table | None, path: str) -> dict[str, Any]:
    """The values that people give to a file, by its stored path; none for another one."""
    if annotations is None:
        return {}
    paths = annotations["path"]
    at = bisect_left(range(len(paths)), path, key=lambda row: paths[row].as_py())
    if at == len(paths) or paths[at].as_py() != path:
        return {}
    return {name: annotations[name][at].as_py() for name in annotations.column_names}


def _stored_type(type: pa.DataType) -> pa.DataType:
    """The one type of a kind that columns have."""
    return pa.int64() if pa.types.is_integer(type) else KINDS[_kind(type) or "number"].type


def decoded(column: Any) -> Any:
    """A column without its dictionary, if it has one."""
    return column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column


def annotated_columns(schemas: Iterable[pa.Schema]) -> dict[str, Attribute]:
    """The columns of tables of annotations."""
    fields = (each for schema in schemas for each in schema)
    return {each.name: Attribute(each.name, kind, "file") for each in fields if (kind := _kind(each.type))}


def unknown_column(name: str, columns: Iterable[str]) -> str:
    """Says that there is no such column, and what else may be meant."""
    if near := difflib.get_close_matches(name, columns, 1):
        return f"there is no column {name[:60]}: is it {near[0]}?"
    return (
        f"there is no column {name[:60]}; a text needs single quotes, as in camera = 'Canon', the columns are "
        f"{', '.join(sorted(columns))}, and `lookalike attributes add` gives others"
    )


def _joined(arrays: Sequence[Any], type: pa.DataType) -> Any:
    """Arrays of segments as one, in chunks."""
    return pa.chunked_array([each if each.type == type else each.cast(type, safe=False) for each in arrays], type)


def _settled(values: Any, name: str) -> Any:
    """A column as filters want it: what stands for nothing is null, and texts that repeat are a dictionary."""
    if name == "path":  # all different, and never empty
        return values
    if pa.types.is_string(values.type):
        values = pc.if_else(pc.equal(values, ""), None, values)
        if name in _DATES:
            return pc.strptime(values, "%Y-%m-%dT%H:%M:%S", "s", error_is_null=True)
        few = len(values[:_SAMPLE].unique()) <= _DISTINCT * min(_SAMPLE, len(values))  # rows are in no order of texts
        return values.dictionary_encode().unify_dictionaries().combine_chunks() if few else values
    if pa.types.is_floating(values.type):
        return pc.if_else(pc.is_finite(values), values, None)
    if name in SOURCES.value_type.names:
        return pc.if_else(pc.equal(values, 0), None, values)
    return values
