"""Pictures by URL, their versions and their names, and the arguments of a command that name some. Only the standard
library."""

import re
import tarfile
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from stages.record.file_kinds import has_picture_extension
from stages.record.url_records import STORES

WEB = ("http", "https")
LISTS = (".txt", ".csv", ".tsv", ".parquet")
"""The endings of lists."""

SHARDS = (".tar", ".tar.gz", ".tgz")
LABEL = ".cls"
FACTS = (".json", ".txt", LABEL)
"""The endings of the files beside pictures in Webdataset's shards."""

_LOOKED_AT = 64
"""Members by which a shard is told from other tars."""

_URL = re.compile(rf"(?:{'|'.join((*WEB, *STORES))})://", re.IGNORECASE)


class FileVersion(NamedTuple):
    """The version of a file at its server, "" and -1 for what that does not say; size in bytes."""

    etag: str = ""
    modified: str = ""
    size: int = -1


class PictureUrl(NamedTuple):
    """A picture to put. name: its true name in the library. attributes: what its list states of it, by heading.
    content: its bytes, if the list holds them; then the URL names the row. label: "" for none. version: what a listing
    says of it."""

    url: str
    name: str
    attributes: Mapping[str, Any] = {}
    content: bytes | None = None
    label: str = ""
    version: FileVersion | None = None


class RemoteOptions(NamedTuple):
    """The options of a command that concern pictures at URLs. folder: what names begin with. networks: that are asked
    though they are not public. by_reference: whether the pictures stay where they are."""

    folder: str
    networks: Sequence[str]
    by_reference: bool
    yes: bool
    wait: bool
    as_json: bool
    address: str


def is_remote(argument: str) -> bool:
    """Whether an argument is a URL, a list of them (a file with the ending of one), or a shard."""
    is_list = Path(argument).suffix.lower() in LISTS and Path(argument).is_file()
    return is_url(argument) or is_list or is_shard(argument)


def is_url(argument: str) -> bool:
    """Whether an argument is the URL of a picture or of several."""
    return bool(_URL.match(argument))


def is_shard(argument: str) -> bool:
    """Whether an argument is the URL of a tar, or a tar on this machine in which a picture has a file of facts."""
    if is_url(argument):
        return urlsplit(argument).path.lower().endswith(SHARDS)
    if not argument.lower().endswith(SHARDS) or not Path(argument).is_file():
        return False
    try:
        with tarfile.open(argument, "r:*") as tar:
            found = [sample_of(each.name) for each in islice(tar, _LOOKED_AT) if each.isfile()]
    except (tarfile.TarError, OSError, EOFError):
        return False
    described = {key for key, suffix in found if suffix in FACTS}
    return any(key in described and has_picture_extension(f"x{suffix}") for key, suffix in found)


def sample_of(name: str) -> tuple[str, str]:
    """The name of the sample that a file of a shard belongs to: that of the file up to its first dot, and what follows
    that, in lower case."""
    directory, slash, file = name.rpartition("/")
    stem, dot, rest = file.partition(".")
    return f"{directory}{slash}{stem}", f"{dot}{rest}".lower()
