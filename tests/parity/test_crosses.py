"""One branch under several names in an input: crossed or joined with itself, or read by several globs."""

import pytest
from python_pachyderm import Client
from python_pachyderm.proto.v2.pps import pps_pb2

from tests.parity.places import MakeInput, Place

PAIRS = """\
name=$(basename "$left")-$(basename "$right")
cat "$left" "$right" > "/pfs/out/$name"
echo "$left $right $left_COMMIT $right_COMMIT $(ls /pfs/left /pfs/right | tr '\\n' ' ')" > "/pfs/out/env-$name"
"""
"""Writes the bytes of both files of a pair, and what the user code was told of them."""

# More than a pipe holds.
LARGE = "x" * (256 << 10)


def pairs_of(place: Place, pfs: MakeInput, repo: str, *, left_lazy: bool = False, right_lazy: bool = False) -> str:
    """A pipeline that crosses a repo's files with themselves by PAIRS; its members are given in reverse order."""
    left, right = pfs(repo, name="left", lazy=left_lazy), pfs(repo, name="right", lazy=right_lazy)
    return place.pipeline(PAIRS, input=pps_pb2.Input(cross=[right, left]), datum_tries=1)


def counts(job: pps_pb2.JobInfo) -> tuple[int, int, int]:
    """The datums that a successful job processed and skipped, and their sum as the job has it."""
    assert job.state == pps_pb2.JOB_SUCCESS, job.reason
    return job.data_processed, job.data_skipped, job.data_total


def states(client: Client, pipeline: str, commit: str) -> dict[tuple[str, ...], int]:
    """The state of each datum of a job by the paths of its files, in the order of the members."""
    return {tuple(each.file.path for each in datum.data): datum.state for datum in client.list_datum(pipeline, commit)}


@pytest.mark.parametrize(
    ("left_lazy", "right_lazy"), [(False, False), (True, True), (True, False)], ids=["downloaded", "lazy", "half lazy"]
)
def test_a_branch_crossed_with_itself_makes_all_ordered_pairs(
    left_lazy: bool, right_lazy: bool, place: Place, pfs: MakeInput
) -> None:
    repo = place.repo()
    name = pairs_of(place, pfs, repo, left_lazy=left_lazy, right_lazy=right_lazy)
    commit = place.put(repo, a="A", b="B")
    assert counts(place.job(name, commit)) == (4, 0, 4)
    found = {path: place.read(name, path, commit) for path in place.paths(name, commit)}
    assert {path: text for path, text in found.items() if not path.startswith("/env-")} == {
        "/a-a": "AA",
        "/a-b": "AB",
        "/b-a": "BA",
        "/b-b": "BB",
    }
    assert {path: text for path, text in found.items() if path.startswith("/env-")} == {
        f"/env-{x}-{y}": f"/pfs/left/{x} /pfs/right/{y} {commit} {commit} /pfs/left: {x}  /pfs/right: {y} \n"
        for x in "ab"
        for y in "ab"
    }


def test_a_change_recomputes_the_pairs_of_the_changed_file(place: Place, pfs: MakeInput, client: Client) -> None:
    """2 S - 1 of the S * S pairs, and none if a file is only removed."""
    repo = place.repo()
    name = pairs_of(place, pfs, repo, left_lazy=True, right_lazy=True)
    assert counts(place.job(name, place.put(repo, a="A", b="B"))) == (4, 0, 4)
    added = place.put(repo, c="C")
    assert counts(place.job(name, added)) == (5, 4, 9)
    assert {paths for paths, state in states(client, name, added).items() if state == pps_pb2.SUCCESS} == {
        ("/a", "/c"),
        ("/b", "/c"),
        ("/c", "/a"),
        ("/c", "/b"),
        ("/c", "/c"),
    }
    changed = place.put(repo, b="other")
    assert counts(place.job(name, changed)) == (5, 4, 9)
    assert [place.read(name, path, changed) for path in ("/a-b", "/b-a", "/b-b")] == ["Aother", "otherA", "otherother"]
    removed = place.put(repo, a=None)
    assert counts(place.job(name, removed)) == (0, 4, 4)
    assert [path for path in place.paths(name, removed) if "env" not in path] == ["/b-b", "/b-c", "/c-b", "/c-c"]


def test_both_pipes_of_one_lazy_file_can_be_read_at_once(place: Place, pfs: MakeInput, client: Client) -> None:
    repo = place.repo()
    crossed = pps_pb2.Input(cross=[pfs(repo, name="left", lazy=True), pfs(repo, name="right", lazy=True)])
    script = 'test -p "$left"\ntest -p "$right"\ncmp "$left" "$right"\ntouch /pfs/out/same'
    name = place.pipeline(script, input=crossed, datum_tries=1)
    commit = place.put(repo, a=LARGE)
    assert counts(place.job(name, commit)) == (1, 0, 1)
    (datum,) = client.list_datum(name, commit)
    assert datum.stats.download_bytes == 2 * len(LARGE)


def test_provenance_names_the_branch_once(place: Place, pfs: MakeInput, client: Client) -> None:
    repo = place.repo()
    name = pairs_of(place, pfs, repo)
    commit = place.put(repo, a="A")
    job = place.job(name, commit)
    direct = client.inspect_branch(name, "master").direct_provenance
    assert sorted((each.repo.name, each.repo.type) for each in direct) == sorted([(repo, "user"), (name, "spec")])
    (output,) = client.inspect_commit((name, "master", commit))
    assert sorted(each.repo.name for each in output.direct_provenance) == sorted([repo, name])
    assert [each.repo.name for each in client.inspect_branch(repo, "master").subvenance].count(name) == 2  # and meta
    shown = [(each.pfs.name, each.pfs.repo, each.pfs.branch, each.pfs.commit) for each in job.details.input.cross]
    assert shown == [("left", repo, "master", commit), ("right", repo, "master", commit)]


def test_a_datum_of_a_pair_shows_its_file_under_each_name(place: Place, pfs: MakeInput, client: Client) -> None:
    """The copy of a datum in the meta commit has downloaded files only: a pipe leaves nothing to copy."""
    repo = place.repo()
    name = pairs_of(place, pfs, repo, right_lazy=True)
    commit = place.put(repo, a="A")
    place.job(name, commit)
    (datum,) = client.list_datum(name, commit)
    info = client.inspect_datum(name, commit, datum.datum.id)
    shown = [(each.file.path, each.file.commit.repo.name, each.file.commit.id) for each in info.data]
    assert shown == [("/a", repo, commit), ("/a", repo, commit)]
    below = client.walk_file(info.pfs_state.commit, info.pfs_state.path)
    files = {each.file.path.removeprefix(f"{info.pfs_state.path}/") for each in below}
    assert {"left/a", "out/a-a"} <= files
    assert "right/a" not in files


def test_the_names_are_part_of_a_datums_id(place: Place, pfs: MakeInput, client: Client) -> None:
    repo = place.repo()
    place.put(repo, a="A", b="B")

    def found(*names: str) -> set[str]:
        crossed = pps_pb2.Input(cross=[pfs(repo, name=name) for name in names])
        return {each.datum.id for each in client.list_datum(input=crossed)}

    assert len(found("left", "right")) == 4
    assert found("left", "right") == found("right", "left")
    assert not found("left", "right") & found("left", "other")


def test_a_branch_joined_with_itself(place: Place, pfs: MakeInput, client: Client) -> None:
    repo = place.repo()
    place.put(repo, **{"x.1": "1", "x.2": "2", "y.1": "3", "1.x": "4"})

    def leaf(name: str, glob: str = "/(*).*", **fields: object) -> pps_pb2.Input:
        return pfs(repo, glob, name=name, join_on="$1", group_by="$1", **fields)

    def paths(joined: pps_pb2.Input) -> list[tuple[str, ...]]:
        return sorted(tuple(file.file.path for file in each.data) for each in client.list_datum(input=joined))

    same = pps_pb2.Input(join=[leaf("left"), leaf("right")])
    x = [("/x.1", "/x.1"), ("/x.1", "/x.2"), ("/x.2", "/x.1"), ("/x.2", "/x.2")]
    assert paths(same) == [("/1.x", "/1.x"), *x, ("/y.1", "/y.1")]
    mirrored = [("/1.x", "/x.1"), ("/1.x", "/y.1"), ("/x.1", "/1.x"), ("/x.2", "/1.x")]
    assert paths(pps_pb2.Input(join=[leaf("left"), leaf("right", "/*.(*)")])) == mirrored
    outer = pps_pb2.Input(join=[leaf("left", outer_join=True), leaf("right", "/*.(*)", outer_join=True)])
    assert paths(outer) == sorted([*mirrored, ("/x.2",), ("/y.1",)])
    grouped = pps_pb2.Input(group=[leaf("left"), leaf("right")])
    found = [sorted(each) for each in paths(grouped)]
    assert found == [["/1.x"] * 2, ["/x.1", "/x.1", "/x.2", "/x.2"], ["/y.1"] * 2]


def test_user_code_of_a_self_join_is_told_the_key_of_each_name(place: Place, pfs: MakeInput) -> None:
    repo = place.repo()
    left, right = (
        pfs(repo, glob, name=name, join_on="$1", lazy=True) for name, glob in (("left", "/(*).*"), ("right", "/*.(*)"))
    )
    script = 'cat "$left" "$right" > /pfs/out/$PACH_DATUM_left_JOIN_ON-$PACH_DATUM_right_JOIN_ON'
    name = place.pipeline(script, input=pps_pb2.Input(join=[left, right]), datum_tries=1)
    commit = place.put(repo, **{"x.y": "1", "y.z": "2"})
    assert counts(place.job(name, commit)) == (1, 0, 1)
    assert place.read(name, "/y-y", commit) == "21"


def test_one_branch_by_three_globs(place: Place, pfs: MakeInput, client: Client) -> None:
    """The root of one repo, and files and a directory of another: a change of a file recomputes its own datum only,
    a change below the directory or the root all of them."""
    labels, repo = place.repo("labels"), place.repo("neighbours")
    crossed = pps_pb2.Input(
        cross=[
            pfs(labels, "/", name="labels"),
            pfs(repo, "/nearest/*", name="nearest"),
            pfs(repo, "/pictures", name="pictures"),
        ]
    )
    script = (
        'out=/pfs/out/$(basename "$nearest")\n'
        'cat "$labels"/* "$nearest" "$pictures"/* > "$out"\n'
        'echo "$labels $nearest $pictures" >> "$out"\n'
        'cd /pfs; find -L labels nearest pictures -type f | sort >> "$out"'
    )
    name = place.pipeline(script, input=crossed, datum_tries=1)
    place.put(labels, csv="L")
    first = place.put(repo, nearest_1="1", nearest_2="2", pictures_1="p", pictures_2="q")
    assert counts(place.job(name, first)) == (2, 0, 2)
    assert states(client, name, first).keys() == {("/", f"/nearest/{each}", "/pictures/") for each in "12"}
    assert place.read(name, "/2", first) == (
        "L2pq/pfs/labels /pfs/nearest/nearest/2 /pfs/pictures/pictures\n"
        "labels/csv\nnearest/nearest/2\npictures/pictures/1\npictures/pictures/2\n"
    )
    third = place.put(repo, nearest_1="changed")
    assert counts(place.job(name, third)) == (1, 1, 2)
    fourth = place.put(repo, pictures_3="r")
    assert counts(place.job(name, fourth)) == (2, 0, 2)
    fifth = place.put(labels, csv="M")
    assert counts(place.job(name, fifth)) == (2, 0, 2)
    direct = client.inspect_branch(name, "master").direct_provenance
    assert sorted(each.repo.name for each in direct) == sorted([labels, repo, name])


def test_a_branch_may_not_be_crossed_with_another_of_its_repo(place: Place, pfs: MakeInput, client: Client) -> None:
    repo = place.repo()
    place.put(repo, a="A")
    crossed = pps_pb2.Input(cross=[pfs(repo, name="left"), pfs(repo, name="right", branch="other")])
    with pytest.raises(Exception, match="multiple branches"):
        place.pipeline("true", input=crossed)
    assert [each.branch.name for each in client.list_branch(repo)] == ["master"]


def test_an_input_without_files_under_one_of_the_names_makes_no_datums(
    place: Place, pfs: MakeInput, client: Client
) -> None:
    repo = place.repo()
    crossed = pps_pb2.Input(cross=[pfs(repo, "/nearest/*", name="nearest"), pfs(repo, "/pictures", name="pictures")])
    name = place.pipeline("touch /pfs/out/$(basename $nearest)", input=crossed)
    commit = place.put(repo, nearest_1="1")
    assert counts(place.job(name, commit)) == (0, 0, 0)
    assert list(client.list_datum(name, commit)) == []
    assert counts(place.job(name, place.put(repo, pictures_1="p"))) == (1, 0, 1)
