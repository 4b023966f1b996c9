"""The groups of copies of the newest good commit of `duplicates`, read when they are asked for.

Knows their commit; what is in a group is described in docs/formats.md.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from stages.quality import copy_groups
from stages.record import block_names, masks, url_records
from stages.record.sources import Source
from stages.serving.follow.original_files import REPO as PICTURES
from stages.serving.follow.pachyderm_client import Absent, PachydermClient

REPO = "duplicates"

KINDS = {"exact": "groups.jsonl", "near": "near.jsonl"}
"""The files of the kinds of copies, by the names that requests give them."""


@dataclass(frozen=True)
class CopyListing:
    """The groups of one commit. commit: of `duplicates`. images: the commit of `images` that they were found in, "" if
    the provenance does not tell. lines: the groups of each kind as JSON, as they stand in its file, but for the files
    of exact ones that have to stay. at_urls: the names of pictures that stay at their URLs."""

    commit: str
    images: str
    lines: Mapping[str, Sequence[bytes]]
    at_urls: frozenset[str] = frozenset()

    def read(self, kind: str, first: int = 0, most: int | None = None) -> Iterator[Mapping[str, Any]]:
        """At most so many groups of a kind, from one on."""
        return map(json.loads, self.lines[kind][first : None if most is None else first + most])

    @cached_property
    def unneeded(self) -> tuple[int, int]:
        """The files beside those to keep, of all exact groups, and their bytes."""
        files, frees = 0, 0
        for group in self.read("exact"):
            files += sum(not each["keep"] for each in sources(group))
            frees += group["frees"]
        return files, frees


class CopyListings:
    """The groups of one Pachyderm. All methods raise PachydermError; may be used from several threads."""

    def __init__(self, server: PachydermClient) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._held: CopyListing | None = None

    def newest(self) -> CopyListing:
        """The groups of the newest good commit. Raises Absent without one."""
        with self._lock:
            newest = self._server.newest(REPO)
            if newest is None:
                raise Absent("the pipeline `duplicates` has no good commit any more")
            if self._held is None or self._held.commit != newest.id:
                lines = {name: self._read(REPO, newest.id, file).splitlines() for name, file in KINDS.items()}
                made_with = self._server.provenance(newest)
                images = made_with.get(PICTURES, "")
                at_urls = self._at_urls(images, made_with) if images and any(lines.values()) else frozenset[str]()
                if at_urls:
                    lines["exact"] = list(_without_last_stored(lines["exact"], at_urls))
                self._held = CopyListing(newest.id, images, lines, at_urls)
            return self._held

    def head(self) -> str:
        """The newest commit of `images`."""
        return self._server.head(PICTURES, "master")

    def age(self, images: str, of: CopyListing) -> str:
        """How a commit of `images` relates to the one that groups were found in: same, newer or older."""
        if images == of.images:
            return "same"
        newest = next((each.id for each in self._server.commits(PICTURES) if each.id in (images, of.images)), images)
        return "newer" if newest == images else "older"

    def _at_urls(self, images: str, made_with: Mapping[str, str]) -> frozenset[str]:
        """The names of the pictures of a commit that stay at their URLs."""
        newest = self._server.newest(masks.REPO)
        hiding = made_with.get(masks.REPO) or (newest.id if newest else "")
        found: set[str] = set()
        for block in self._server.files(PICTURES, images, f"/%block-*{url_records.SUFFIX}"):
            read = partial(self._read, PICTURES, images, block.path)
            mask = self._read(masks.REPO, hiding, masks.path(block.path)) if hiding else b""
            found |= {each.path for each in block_names.read_list(read) or ()} - masks.parse(mask)
        return frozenset(found)

    def _read(self, repo: str, commit: str, path: str, most: int | None = None) -> bytes:
        """The first bytes of a file; none without it, as in an empty library."""
        with contextlib.suppress(Absent):
            return b"".join(self._server.read(repo, commit, path, 0, most))
        return b""


def _without_last_stored(lines: Iterable[bytes], at_urls: AbstractSet[str]) -> Iterator[bytes]:
    """The exact groups, of which a stored file stays if one is stored, see copy_groups.without_last_stored."""
    for line in lines:
        group = json.loads(line)
        every = {source_of(each): each for each in sources(group)}
        others = [source for source, each in every.items() if not each["keep"]]
        if (spared := copy_groups.spared_source(others, every, at_urls)) is not None:
            every[spared]["keep"] = True
            group["frees"] -= spared.bytes
            line = json.dumps(group).encode()
        if spared is None or len(others) > 1:
            yield line


def source_of(found: Mapping[str, Any]) -> Source:
    """A file of a group as a source."""
    return Source(**{name: found[name] for name in Source._fields if name in found})


def sources(group: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The files of a group."""
    return (source for picture in group["pictures"] for source in picture["sources"])
