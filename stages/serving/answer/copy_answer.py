"""Groups of copies as answers, and the removal of ticked files: which file of each group then stays.

Knows no HTTP, and not how files are removed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from stages.record import url_records
from stages.record.sources import LOSSLESS, LOSSY, Source
from stages.serving.answer import search_answer
from stages.serving.follow.copy_listings import CopyListing, source_of, sources
from stages.serving.follow.refusals import Refusal, bad_request
from stages.serving.follow.snapshots import Snapshot


def page(listing: CopyListing, library: Snapshot, kind: str, after: int, limit: int) -> dict[str, Any]:
    """A page of the groups of one kind, from the one after so many. library: has the files themselves."""
    groups = [
        {
            "number": after + place,
            "why": group["why"],
            "frees": group["frees"],
            "files": [each | {"original": _original(library, each["id"], each["path"])} for each in _files(group)],
        }
        for place, group in enumerate(listing.read(kind, after, limit), start=1)
    ]
    end = after + len(groups)
    copies, frees = listing.unneeded
    return {
        "kind": kind,
        "groups": groups,
        "after": end if end < len(listing.lines[kind]) else None,
        "totals": {name: len(lines) for name, lines in listing.lines.items()},
        "copies": copies,
        "frees": frees,
    }


def removal(listing: CopyListing, names: Collection[str]) -> dict[str, Any]:
    """What the removal of files with these true names takes, and what it leaves of each group. Raises Refusal if a name
    is in no group, or if a group of any kind would have no file left, or none that is stored where one is."""
    wanted, sizes, groups = set(names), dict[str, int](), list[dict[str, Any]]()
    for group in (group for kind in listing.lines for group in listing.read(kind)):
        gone = {source["path"] for source in sources(group)} & wanted  # two files can have one name, and go together
        if not gone:
            continue
        files = _files(group)
        stay = [each for each in files if each["path"] not in gone]
        if not stay:
            raise Refusal(
                409, "nothing-left", f"all files of the group of {group['keep']} would go: keep at least one of them"
            )
        if last := url_records.last_stored([each["path"] for each in files], gone, listing.at_urls):
            raise Refusal(
                409,
                "nothing-stored",
                f"{min(last)} cannot go: what stays of its group is not stored here, but at URLs, and can vanish",
            )
        going = [each for each in files if each["path"] in gone]
        if not gone <= sizes.keys():
            groups.append({"remove": going, "stay": stay})
        sizes |= {each["path"]: each["bytes"] for each in going}
    if unknown := sorted(wanted - sizes.keys()):
        raise bad_request(f"{unknown[0][:200]} is in no group of copies: this page removes nothing else")
    return {"count": len(sizes), "bytes": sum(sizes.values()), "groups": groups}


def _files(group: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The files of a group: the one to keep, then the others, each with what makes it a copy of that."""
    kept = next(source for source in sources(group) if source["path"] == group["keep"] and source["keep"])
    files = [
        {
            "path": source["path"],
            "id": picture["id"],
            "copy": "" if source is kept else _likeness(source_of(kept), source_of(source), picture),
            **{name: source[name] for name in ("keep", "width", "height", "bytes", "taken")},
            "thumbnail": search_answer.addresses(picture["id"], 0)["thumbnail"],
        }
        for picture in group["pictures"]
        for source in picture["sources"]
    ]
    for each in files:
        if each["keep"] and each["copy"] and group["kind"] == "exact":
            each["copy"] += ", the last one stored"  # the others are at URLs
    return sorted(files, key=lambda each: each["copy"] != "")


def _likeness(kept: Source, copy: Source, picture: Mapping[str, Any]) -> str:
    """Why a file is a copy of the one that is kept, in words."""
    if copy.sha256 == kept.sha256:
        return "same bytes"
    if copy.content == kept.content:
        return "same pixels"
    words = [picture["turned"]] if picture["turned"] else []
    if sorted((copy.width, copy.height)) != sorted((kept.width, kept.height)):
        words.append("another size")
    if (kept.coding, copy.coding) == (LOSSLESS, LOSSY):
        words.append("compressed")
    return ", ".join(words) or "looks alike"


def _original(library: Snapshot, id: str, path: str) -> str | None:
    """The address of a file itself, None where the library that answers does not have it."""
    row = library.library.row(id)
    paths = [] if row is None else [each.path for each in library.library.sources(row)]
    return f"/originals/{id}?source={paths.index(path)}" if path in paths else None
