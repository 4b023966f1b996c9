"""The overlay large: more and smaller buckets of partition, and the same library below them."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pipelines.specifications import drafts, overlays, pipeline_specs
from stages.decode.picture_normaliser import picture_id
from stages.files import thumbnail_files, vector_files
from stages.files.tables.index_table import TABLE, IndexTable
from stages.record import part_names
from stages.record.framing import PictureSquare
from stages.record.sources import Source
from tests.e2e.world import Job, MakeWorld, Paint, World, specs
from tests.small_archives import zipped

pytestmark = pytest.mark.timeout(600)

LONE = 30
"""Pictures in files of their own: so many that some share one of the 64 buckets, and none of the 1,024."""

Row = tuple[str, tuple[Source, ...], bytes, bytes]


def directory(picture: bytes) -> str:
    """The bucket of the part of a picture in a file of its own."""
    id = picture_id(PictureSquare(np.asarray(Image.open(io.BytesIO(picture))), (96, 96)))
    return part_names.directory(part_names.bucket(id, part_names.BUCKETS))


def overlaid() -> list[pipeline_specs.PipelineSpec]:
    """The specifications with the overlay."""
    changed = overlays.apply([overlays.load("large")], drafts.find([pipeline_specs.SHIPPED_SPECS]))
    (partition,) = (draft.spec() for draft in changed if draft.name == "partition")
    return [partition if each.name == "partition" else each for each in specs()]


def rows(world: World) -> list[Row]:
    """The id, the sources, the thumbnail and the vector of each picture in the index."""
    files = world.content("index")
    found = []
    for path, data in files.items():
        if not path.endswith(TABLE):
            continue
        table, segment = IndexTable.read(io.BytesIO(data)), path.removesuffix(TABLE)
        columns = (table.ids, table.sources, table.thumbnails, table.vectors.rows)
        for id, sources, (name, begin, size), row in zip(*columns, strict=True):
            shown = files[f"{segment}{thumbnail_files.DIRECTORY}/{name}{thumbnail_files.SUFFIX}"]
            of_bucket = np.load(io.BytesIO(files[f"{segment}{vector_files.DIRECTORY}/{name}{vector_files.SUFFIX}"]))
            found.append((id, tuple(sources), shown[begin : begin + size], of_bucket[row].tobytes()))
    return sorted(found)


def arrays(world: World) -> dict[str, bytes]:
    """All that the index holds but for tables and the files of buckets: hashes and facts."""
    return {path: data for path, data in world.content("index").items() if path.endswith(("hashes.npy", "index.json"))}


def deployed(world: World, which: list[pipeline_specs.PipelineSpec]) -> dict[str, Job]:
    """The jobs of a deployment that changes partition alone."""
    done = world.deploy(which)
    assert {name for name, action in done.items() if action != "unchanged"} == {"partition"}
    return world.settle(world.newest("partition"))


def test_more_buckets_give_the_same_pictures_and_answers_without_a_forward_pass(
    make_world: MakeWorld, backbones: dict[str, Path], paint: Paint
) -> None:
    world = make_world("large")
    world.deploy()
    lone = {f"{seed}.png": paint(seed) for seed in range(LONE)}
    twice = {f"{seed}.png": paint(seed) for seed in (0, LONE)}  # one of them is in two parts, of two buckets
    world.add({**lone, "some.zip": zipped(twice)})
    world.query("red.png", paint(LONE + 1))
    world.settle(world.push(backbones["first"]))

    before, pictures, content = world.trees(), rows(world), arrays(world)
    assert len(pictures) == LONE + 1
    buckets = {directory(each) for each in lone.values()} | {part_names.directory(part_names.source_name("some.zip"))}
    coarse = {each.partition("/")[0] for each in buckets}
    assert len(coarse) < len(buckets)
    assert {Path(path).stem for path in before["partition"] if path.endswith(".npy")} == coarse

    jobs = deployed(world, overlaid())
    assert jobs.keys() == {"partition", "index", "search", "render"}
    assert (jobs["partition"].processed, jobs["partition"].skipped) == (len(buckets), 0)
    fine = world.hashes("partition")
    assert {Path(path).stem for path in fine if path.endswith(".npy")} == {each.replace("/", "-") for each in buckets}
    assert rows(world) == pictures
    assert arrays(world) == content
    assert world.hashes("search") == before["search"]
    assert (jobs["render"].processed, world.hashes("render")) == (0, before["render"])

    assert deployed(world, specs())["partition"].processed == len(coarse)
    assert world.trees() == before
