"""The facts about a library at a glance: its pictures, queries and model, the disk, the GPUs, and addresses to open.

Reads small files and the sizes of others only, so that it takes a moment with any number of pictures.
"""

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pipelines.client import backbones
from pipelines.client.jobs.jobs import Jobs
from pipelines.client.repository import Repository
from pipelines.client.server import local
from pipelines.client.server.connection import Connection
from pipelines.client.server.outages import outlasting
from pipelines.client.services import roles, services
from pipelines.cluster import gpu_holders, growth
from pipelines.cluster.growth import Growth


@dataclass(frozen=True, slots=True)
class Model:
    """The backbone in `models`: its name, the side of its pictures in pixels, the length of its vectors, the type it
    computes in, and whether the index has the vectors of another one."""

    name: str
    image_size: int
    dimension: int
    precision: str
    replacing: bool


@dataclass(frozen=True, slots=True)
class Disk:
    """The bytes that the library takes, at most, and those that are free; the directory, "" on another machine, where
    free bytes are not known (None) and those taken are the sizes of all repos."""

    directory: str
    used: int
    free: int | None


@dataclass(frozen=True, slots=True)
class Gpus:
    """The GPUs of a localpachd: their number, and how many are in use."""

    total: int
    in_use: int


@dataclass(frozen=True, slots=True)
class Overview:
    """All of it. `pictures`: the distinct ones that are searched; `queries`: the entries; `neighbours`: K; `growth`:
    the numbers that grow with them; `addresses`: those of services. None stands for a part that is missing, or for the
    GPUs of a cluster."""

    pictures: int
    queries: int
    model: Model | None
    image_size: int | None
    fit: str | None
    neighbours: int | None
    growth: Growth
    disk: Disk
    gpus: Gpus | None
    addresses: tuple[str, ...]


def read(connection: Connection) -> Overview:
    """The facts about the library of a connection."""
    pipelines = outlasting(connection, Jobs(connection).pipelines)
    index = outlasting(connection, partial(_index, connection))
    number = sum(int(each["count"]) for each in index)
    preprocess, render = (_variables(pipelines, name) for name in ("preprocess", "render"))
    leases = gpu_holders.local_leases(connection)
    return Overview(
        pictures=number,
        queries=len(outlasting(connection, lambda: list(Repository(connection, "queries").list()))),
        model=outlasting(connection, partial(_model, connection, {str(each["model"]) for each in index})),
        image_size=_number(preprocess.get("IMAGE_SIZE")),
        fit=preprocess.get("FIT"),
        neighbours=_number(render.get("K")),
        growth=growth.read(pipelines.values(), number),
        disk=_disk(connection),
        gpus=None if leases is None else Gpus(leases.total, leases.allocated),
        addresses=tuple(_addresses(connection, pipelines)),
    )


def pictures(connection: Connection) -> int:
    """The distinct pictures that are searched."""
    return sum(int(each["count"]) for each in outlasting(connection, partial(_index, connection)))


def _index(connection: Connection) -> list[Mapping[str, Any]]:
    """The content of every segment's index.json."""
    found = Repository(connection, "index").good()
    contents = [] if found is None else [content for _, content in found.read_all("/*/index.json")]
    try:
        return [{"count": each["count"], "model": each["model"]} for each in map(json.loads, contents)]
    except (ValueError, KeyError, TypeError):
        return []  # another index: what is in it is not known here


def _model(connection: Connection, indexed: set[str]) -> Model | None:
    spec = backbones.held(Repository(connection, backbones.REPO))
    if spec is None:
        return None
    return Model(spec.name, spec.image_size, spec.dimension, spec.precision, bool(indexed - {spec.sha256}))


def _variables(pipelines: Mapping[str, Any], name: str) -> Mapping[str, str]:
    return pipelines[name].details.transform.env if name in pipelines else {}


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


def _disk(connection: Connection) -> Disk:
    root = local.library()
    server = None if root is None else local.running(root)
    if root is not None and server is not None and server.address == connection.address:
        return Disk(str(root), _size(root), shutil.disk_usage(root).free)
    repos = outlasting(connection, lambda: list(connection.client.list_repo()))
    sizes = (each.size_bytes_upper_bound for each in repos if each.repo.project.name == connection.project)
    return Disk("", sum(sizes), None)


def _size(directory: Path) -> int:
    """The bytes that the files below a directory take on the disk. Files may vanish meanwhile."""
    total, waiting = 0, [str(directory)]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
    return total


def _addresses(connection: Connection, pipelines: Mapping[str, Any]) -> list[str]:
    """The addresses of services at the server's host."""
    host = urlsplit(connection.address).hostname or "localhost"
    found = []
    for name, info in pipelines.items():
        port = info.details.service.external_port
        if port and name in roles.ROLES:
            found.append(services.published_at(connection, info.details))
        elif port:
            found.append(f"http://{host}:{port}")
    return found
