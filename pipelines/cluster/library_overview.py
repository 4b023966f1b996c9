"""The facts about a library at a glance: its pictures, queries and model, the disk, the GPUs, and addresses to open.

Reads small files and the sizes of others only, so that it takes a moment with any number of pictures.
"""

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pipelines.client import backbones, repository
from pipelines.client.deployment import part_sizes
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.repository import Repository
from pipelines.client.server import local_server
from pipelines.client.server.connection import Connection
from pipelines.client.server.parallel_reads import parallel_reads
from pipelines.client.services import service_discovery, service_roles
from pipelines.cluster import gpu_holders
from pipelines.specifications import segment_numbers
from pipelines.specifications.segment_numbers import SegmentNumbers
from stages.backbone.backbone_spec import BackboneSpec


@dataclass(frozen=True, slots=True)
class ModelSummary:
    """The backbone in `models`: its name, the side of its pictures in pixels, the length of its vectors, the type it
    computes in, whether the index has the vectors of another one, and whether it has a text tower."""

    name: str
    image_size: int
    dimension: int
    precision: str
    replacing: bool
    words: bool


@dataclass(frozen=True, slots=True)
class DiskUsage:
    """The bytes that the library takes, at most, and those that are free; the directory, "" on another machine, where
    free bytes are not known (None) and those taken are the sizes of all repos."""

    directory: str
    used: int
    free: int | None


@dataclass(frozen=True, slots=True)
class GpuUsage:
    """The GPUs of a localpachd: their number, and how many are in use."""

    total: int
    in_use: int


@dataclass(frozen=True, slots=True)
class LibraryGrowth:
    """segment_digits, buckets: as deployed; in_segment, in_bucket: the pictures of a segment, and of a bucket; files:
    those that partition writes for a picture at most; proposed: the numbers for this size; outgrown: the reasons for a
    change, none if there is none to make."""

    segment_digits: int
    buckets: int
    in_segment: int
    in_bucket: int
    files: float
    proposed: SegmentNumbers
    outgrown: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LibraryOverview:
    """All of it. `pictures`: the distinct ones that are searched; `queries`: the entries; `neighbours`: K;
    `growth`: the numbers that grow with them; `addresses`: those of services. None stands for a part that is
    missing, or for the GPUs of a cluster."""

    pictures: int
    queries: int
    model: ModelSummary | None
    image_size: int | None
    fit: str | None
    neighbours: int | None
    growth: LibraryGrowth
    disk: DiskUsage
    gpus: GpuUsage | None
    addresses: tuple[str, ...]


def read(connection: Connection) -> LibraryOverview:
    """The facts about the library of a connection."""
    with parallel_reads() as reads:
        index = reads.submit(connection.retry, _index, connection)
        queries = reads.submit(connection.retry, lambda: len(list(Repository(connection, "queries").list())))
        models = Repository(connection, backbones.REPO)
        pushed = reads.submit(connection.retry, backbones.current_backbone, models)
        words = reads.submit(connection.retry, backbones.has_words, models)
        leases = reads.submit(connection.retry, gpu_holders.local_leases, connection)
        disk = reads.submit(_disk, connection)
        pipelines = connection.retry(ProjectJobs(connection).pipelines)
        addresses = tuple(_addresses(connection, pipelines))
    number = sum(int(each["count"]) for each in index.result())
    preprocess, render = (_variables(pipelines, name) for name in ("preprocess", "render"))
    machine = leases.result()
    return LibraryOverview(
        pictures=number,
        queries=queries.result(),
        model=_model(pushed.result(), {str(each["model"]) for each in index.result()}, words.result()),
        image_size=_number(preprocess.get("IMAGE_SIZE")),
        fit=preprocess.get("FIT"),
        neighbours=_number(render.get("K")),
        growth=growth(pipelines.values(), number),
        disk=disk.result(),
        gpus=None if machine is None else GpuUsage(machine.total, machine.allocated),
        addresses=addresses,
    )


def pictures(connection: Connection) -> int:
    """The distinct pictures that are searched."""
    return sum(int(each["count"]) for each in connection.retry(_index, connection))


def _index(connection: Connection) -> list[Mapping[str, Any]]:
    """The content of every segment's index.json."""
    found = Repository(connection, "index").good()
    contents = [] if found is None else [content for _, content in found.read_all("/*/index.json")]
    try:
        return [{"count": each["count"], "model": each["model"]} for each in map(json.loads, contents)]
    except (ValueError, KeyError, TypeError):
        return []  # another index: what is in it is not known here


def _model(spec: BackboneSpec | None, indexed: set[str], words: bool) -> ModelSummary | None:
    if spec is None:
        return None
    replacing = bool(indexed - {spec.sha256})
    return ModelSummary(spec.name, spec.image_size, spec.dimension, spec.precision, replacing, words)


def _variables(pipelines: Mapping[str, Any], name: str) -> Mapping[str, str]:
    return pipelines[name].details.transform.env if name in pipelines else {}


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


def _disk(connection: Connection) -> DiskUsage:
    root = local_server.library()
    server = None if root is None else local_server.running(root)
    if root is not None and server is not None and server.address == connection.address:
        return DiskUsage(str(root), _size(root), shutil.disk_usage(root).free)
    return DiskUsage("", sum(connection.retry(repository.sizes, connection).values()), None)


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
        if port and name in service_roles.ROLES:
            found.append(service_discovery.published_at(connection, info.details))
        elif port:
            found.append(f"http://{host}:{port}")
    return found


def growth(pipelines: Iterable[Any], pictures: int) -> LibraryGrowth:
    """The growth of a library of so many pictures. pipelines: the deployed ones, as PipelineInfos with details."""
    now, then = part_sizes.numbers(info.details for info in pipelines), segment_numbers.proposed(pictures)
    return LibraryGrowth(
        now.segment_digits,
        now.buckets,
        now.in_segment(pictures),
        now.in_bucket(pictures),
        round(now.files(pictures), 4),
        then,
        tuple(segment_numbers.outgrown(pictures, now, then)),
    )


def larger_sizes(found: LibraryGrowth) -> dict[str, str]:
    """The variables to change, by name; none for a library that has not outgrown its segments."""
    then = found.proposed.segment_digits
    return {part_sizes.DIGITS: str(then)} if then > found.segment_digits else {}
