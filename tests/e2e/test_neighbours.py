"""The opt-in pipelines of copies and of evaluation on a real server: the datums that each change computes and skips,
and output that equals a rebuild."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from PIL import Image

from pipelines.client.repository import PutFile
from pipelines.specifications import optional_specs, pipeline_specs
from pipelines.specifications.pipeline_specs import PipelineSpec
from stages import neighbours
from stages.datum.contract import Datum, DatumInput
from stages.files.tables.index_table import TABLE, IndexTable
from stages.files.tables.pair_table import PairTable
from stages.record.sources import Source
from tests.e2e.oracle import Tree, read, write
from tests.e2e.test_increments import id_of
from tests.e2e.world import Job, MakeWorld, Paint, World, library_specs, with_environment
from tests.stages.scenes import saved, scene

pytestmark = pytest.mark.timeout(600)

THRESHOLD, WIDER = "0.02", "2"
GROUPS = ("duplicates", "evaluate")
BELOW = GROUPS
SEEDS = range(1, 7)
LABELS = b"source,label\n" + b"".join(b"%d.png,%d\n" % (seed, seed % 3) for seed in SEEDS)


def library_pipelines(threshold: str = THRESHOLD) -> list[PipelineSpec]:
    """The pipelines from pictures to their near pictures."""
    opted = {
        spec.name: spec
        for group in GROUPS
        for spec in optional_specs.required_specs(pipeline_specs.SHIPPED_SPECS, group)
    }
    opted["neighbours"] = with_environment(opted["neighbours"], THRESHOLD=threshold)
    return [*library_specs(), *opted.values()]


@dataclass(frozen=True)
class Step:
    """The jobs of a change by pipeline; after it the files of the pairs and the tables of the index by segment, and
    the hashes of the pairs and of the other outputs."""

    jobs: dict[str, Job]
    files: Tree
    index: Tree
    hashes: dict[str, bytes]
    below: dict[str, dict[str, bytes]]

    @property
    def trees(self) -> dict[str, dict[str, bytes]]:
        return {"neighbours": self.hashes, **self.below}

    @property
    def segments(self) -> list[str]:
        return sorted(self.index)

    def changed(self, other: "Step") -> set[str]:
        """The paths of files that differ from those of another step."""
        both = self.files.keys() | other.files.keys()
        return {path for path in both if self.files.get(path) != other.files.get(path)}


@dataclass(frozen=True)
class Story:
    """The steps by name, and, if outputs are compared, the hashes of what a new server computed from the pictures, the
    labels and the model after the picture was added."""

    steps: dict[str, Step]
    rebuilt: Tree | None
    segment: str


def step(world: World, *commits: str) -> Step:
    jobs = world.settle(*commits)
    below = {name: world.hashes(name) for name in BELOW}
    tables = {path.split("/")[1]: each for path, each in world.content("index").items() if path.endswith(TABLE)}
    return Step(jobs, world.content("neighbours"), tables, world.hashes("neighbours"), below)


def rebuilt(make_world: MakeWorld, world: World, name: str, threshold: str = THRESHOLD) -> Tree:
    """What a new server makes of the same pictures and model."""
    new = make_world(name)
    new.deploy(library_pipelines(threshold))
    new.settle(*new.copy(world, ("images", "labels", "models")))
    return {f"{repo}:{path}": hash for repo in ("neighbours", *BELOW) for path, hash in new.hashes(repo).items()}


def original(seed: int) -> Image.Image:
    return scene(seed, (96, 96))


def copies(seed: int) -> Iterator[bytes]:
    """Changed copies of a scene, compressed more and more."""
    return (saved(original(seed), "JPEG", quality=quality) for quality in range(95, 30, -1))


@pytest.fixture(scope="module")
def story(make_world: MakeWorld, backbones: dict[str, Path], paint: Paint, compares: bool) -> Story:
    """Runs all steps once."""
    world = make_world("neighbours")
    world.deploy(library_pipelines())
    library = {f"{seed}.png": paint(seed) for seed in SEEDS}
    library |= {f"{seed}.png": saved(original(seed)) for seed in (1, 2)}
    library |= {f"near/{number}.jpg": each for number, each in enumerate(itertools.islice(copies(1), 3))}
    library["copies/one.png"] = library["2.png"]
    world.add(library)
    world.repo("labels").write([PutFile("/labels.csv", LABELS)])
    steps = {"built": step(world, world.push(backbones["first"]))}
    segments = steps["built"].segments
    added = next(each for each in copies(2) if id_of(each)[0] in segments)
    steps["added"] = step(world, world.add({"added.jpg": added}))
    again = rebuilt(make_world, world, "again") if compares else None
    steps["removed"] = step(world, world.remove("added.jpg"))
    world.deploy(library_pipelines(WIDER))
    steps["wider"] = step(world, world.newest("neighbours"))
    world.deploy(library_pipelines())
    steps["narrower"] = step(world, world.newest("neighbours"))
    return Story(steps, again, id_of(added)[0])


def test_a_picture_recomputes_the_pairs_of_its_segment_and_no_other(story: Story) -> None:
    built, added = story.steps["built"], story.steps["added"]
    count = len(built.segments)
    assert built.jobs["neighbours"].counts == (count**2, 0, 0)
    assert added.jobs["neighbours"].counts == (2 * count - 1, (count - 1) ** 2, 0)
    assert all(story.segment in path for path in added.changed(built))
    assert {name: added.jobs[name].processed for name in BELOW} == {"duplicates": 1, "evaluate": 1}


@pytest.mark.only_in_all
def test_every_output_equals_a_rebuild(story: Story) -> None:
    trees = story.steps["added"].trees
    assert {f"{repo}:{path}": hash for repo, tree in trees.items() for path, hash in tree.items()} == story.rebuilt


def test_a_removal_gives_the_bytes_from_before(story: Story) -> None:
    built, removed = story.steps["built"], story.steps["removed"]
    assert removed.trees == built.trees
    assert removed.jobs["neighbours"].processed == 2 * len(built.segments) - 1


def test_another_threshold_changes_the_pairs_and_no_evaluation(story: Story) -> None:
    removed, wider, narrower = (story.steps[name] for name in ("removed", "wider", "narrower"))
    assert wider.jobs["neighbours"].processed == len(removed.segments) ** 2
    assert wider.changed(removed)
    assert narrower.trees == removed.trees
    for each in (wider, narrower):
        assert each.jobs["duplicates"].counts == (1, 0, 0)
        assert "evaluate" not in each.jobs
        assert each.below["evaluate"] == removed.below["evaluate"]


def test_near_pictures_and_copies_are_found(story: Story, tmp_path: Path) -> None:
    built = story.steps["built"]
    pictures: dict[str, list[str]] = {}
    near = set()
    for content in built.index.values():
        (tmp_path / "table").write_bytes(content)
        listed = IndexTable.read(tmp_path / "table")
        pictures |= dict(zip(listed.ids, map(_names, listed.sources), strict=True))
    for content in built.files.values():
        (tmp_path / "table").write_bytes(content)
        pairs = PairTable.read(tmp_path / "table").pictures
        names = [min(_names(sources)) for sources in pairs.sources]
        ends = zip(pairs.first, pairs.second, strict=True)
        near |= {tuple(sorted((names[one], names[other]))) for one, other in ends}
    assert sorted(name for names in pictures.values() for name in names) == sorted(
        [*(f"{seed}.png" for seed in SEEDS), *(f"near/{number}.jpg" for number in range(3)), "copies/one.png"]
    )
    family = ["1.png", "near/0.jpg", "near/1.jpg", "near/2.jpg"]
    assert near == {*itertools.combinations(family, 2), ("2.png", "2.png")}


def _names(sources: Sequence[Source]) -> list[str]:
    return [each.path for each in sources]


def computed(world: World, scratch: Path) -> Tree:
    """What the stage makes of the server's index on plain directories."""
    write(scratch / "index", world.content("index"))
    names = sorted(path.name for path in (scratch / "index").iterdir())
    sides = {name: DatumInput(name, scratch / "index" / name, name, "") for name in names}
    (spec,) = (each for each in library_pipelines() if each.name == "neighbours")
    process = neighbours.start(dict(spec.document["transform"]["env"]))
    for left, right in itertools.product(names, names):
        process(Datum({"left": sides[left], "right": sides[right]}, scratch / "out"))
    return read(scratch / "out")


@pytest.mark.only_in_all
def test_a_server_killed_while_neighbours_are_computed_gives_the_same_bytes(
    make_world: MakeWorld, backbones: dict[str, Path], paint: Paint, tmp_path: Path
) -> None:
    world = make_world("interrupted", late=True, forks=False)
    world.deploy([each for each in library_pipelines() if each.name not in BELOW])
    world.add({f"{seed}.png": paint(seed) for seed in range(1, 9)})
    commit = world.push(backbones["first"])
    lines = world.client.get_job_logs("neighbours", commit, follow=True)
    assert next(str(line.message) for line in lines if line.user).startswith("neighbours: left:/")
    world = world.killed()
    world.settle(commit)
    assert world.content("neighbours") == computed(world, tmp_path)
