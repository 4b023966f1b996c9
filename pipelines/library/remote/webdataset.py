"""Webdataset's shards: tars in which the files of one name are one sample, a picture and what is known of it.

Of a sample `.json` and `.txt` give attributes, as sidecars beside pictures do, and `.cls` the label. A tar is read from
the disk, member by member. Contacts no server.
"""

import tarfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pipelines.errors import LookalikeError
from pipelines.library.attributes import sidecar_files
from pipelines.library.remote.picture_lists import ListProblem
from pipelines.library.remote.picture_urls import FACTS, LABEL, PictureUrl, is_url, sample_of
from stages.record.file_kinds import has_picture_extension
from stages.record.file_limits import MAX_PICTURE_BYTES
from stages.record.pfs_names import is_system_file

_LARGEST_FACT = 1 << 20


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
        inside = "/".join(part for part in each.name.split("/") if part not in ("", ".", ".."))
        yield PictureUrl(where, f"{stem}/{inside}", attributes, content, label)


def _content(tar: tarfile.TarFile, member: tarfile.TarInfo, most: int) -> bytes:
    """Raises ValueError if it is too large, tarfile.ReadError if it is cut off."""
    if member.size > most:
        raise ValueError(f"it has more than {most:,} bytes")
    file = tar.extractfile(member)
    content = b"" if file is None else file.read()
    if len(content) < member.size:
        raise tarfile.ReadError(f"{member.name} ends early")
    return content
