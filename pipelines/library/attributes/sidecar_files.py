"""Files beside pictures that state facts of them, as one table: JSON, text and XMP.

photo.json and photo.jpg.json both belong to photo.jpg. Of JSON its values become attributes, those in objects with the
names of these before them, and lists of values as text; a text file is the attribute `caption`; of XMP the properties
of the picture are attributes, by their names without the namespace.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from pipelines.library.attributes.picture_keys import PictureKeys
from pipelines.library.attributes.table_files import StatedTable, attribute_name
from pipelines.library.picture_sources import folder_name
from stages.record.label_files import LineProblem

CAPTION = "caption"

_LARGEST = 1 << 20
_RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"


def read_sidecars(directory: Path, pictures: PictureKeys, renamed: Mapping[str, str]) -> tuple[StatedTable, list[str]]:
    """The table of the sidecars in a folder and below it, and those beside no picture of the library. A picture's name
    begins with the folder's own, as `lookalike add` puts them, or with what is below it. renamed: other names for
    attributes."""
    file, top = directory.name or str(directory), folder_name(directory)
    strangers: list[str] = []
    unreadable: list[LineProblem] = []
    conflicts: list[LineProblem] = []
    rows: dict[str, dict[str, Any]] = {}
    for path in sorted(_files(directory)):
        name = path.relative_to(directory).as_posix()
        bare = name.removesuffix(path.suffix)
        found = (top and pictures.beside(f"{top}/{bare}")) or pictures.beside(bare)
        if not found:
            strangers.append(name)
            continue
        try:
            values = READERS[path.suffix.lower()](_content(path))
        except (ValueError, OSError, ElementTree.ParseError) as error:
            unreadable.append(LineProblem(name, 0, f"it cannot be read: {error}"))
            continue
        named = {attribute_name(each): value for each, value in values.items()}
        named = {renamed.get(each, each): value for each, value in named.items() if each}
        for picture in found:
            known = rows.setdefault(picture, {})
            for each, value in named.items():
                if known.setdefault(each, value) != value:
                    reason = f"its sidecars state {known[each]!r} and {value!r} as {each}: correct one of them"
                    conflicts.append(LineProblem(picture, 0, reason))
    keys = sorted(rows)
    columns = {name: [rows[each].get(name) for each in keys] for name in sorted({*chain(*rows.values())})}
    return StatedTable(file, range(1, len(keys) + 1), keys, columns, problems=[*unreadable, *conflicts]), strangers


def _files(directory: Path) -> Iterator[Path]:
    for home, folders, names in os.walk(directory):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        yield from (Path(home, name) for name in names if Path(name).suffix.lower() in READERS)


def _content(path: Path) -> str:
    if path.stat().st_size > _LARGEST:
        raise ValueError(f"it is larger than {_LARGEST >> 20} MB")
    return path.read_text(encoding="utf-8-sig")


def _from_json(text: str) -> dict[str, Any]:
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("it is not an object in braces")
    return dict(_flat(found))


def _flat(values: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        whole = f"{above}_{name}" if above else name
        if isinstance(value, dict):
            yield from _flat(value, whole)
        elif isinstance(value, list):
            if value and not any(isinstance(each, dict | list) for each in value):
                yield whole, ", ".join(map(str, value))
        else:
            yield whole, value


def _from_text(text: str) -> dict[str, Any]:
    return {CAPTION: text.strip()}


def _from_xmp(text: str) -> dict[str, Any]:
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise ValueError("it defines entities, which XMP does not have")
    found: dict[str, Any] = {}
    for described in ElementTree.fromstring(text).iter(f"{_RDF}Description"):
        found |= {_local(name): value for name, value in described.attrib.items() if not name.startswith(_RDF)}
        for each in described:
            items = [item.text.strip() for item in each.iter(f"{_RDF}li") if item.text and item.text.strip()]
            value = ", ".join(dict.fromkeys(items)) or (each.text or "").strip()
            if value:
                found[_local(each.tag)] = value
    return {name: value for name, value in found.items() if value}


def _local(name: str) -> str:
    return name.rpartition("}")[2]


READERS: Mapping[str, Callable[[str], dict[str, Any]]] = {
    ".json": _from_json,
    ".txt": _from_text,
    ".xmp": _from_xmp,
}
"""Give the attributes in the text of a file, by its ending. They raise ValueError, or that of XML."""
