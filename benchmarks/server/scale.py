"""How localpachd's calls grow with what it holds: pipelines, the depth of a DAG, job sets, branches. Each is measured
at a size, beside what n log n makes of the same call at half of the size on the same server."""

from collections.abc import Callable, Iterator

import python_pachyderm
from python_pachyderm.proto.v2.pfs import pfs_pb2
from python_pachyderm.proto.v2.pps import pps_pb2

from benchmarks.kit import servers
from benchmarks.kit.growth import allowed
from benchmarks.kit.report import Line, Result, Row, interleaved, line, timed

Look = Callable[[], object]
_REPO = "sources"


def measure_scale(rounds: int, pipelines: int, depth: int, job_sets: int, branches: int) -> Result:
    """The seconds to create all of `pipelines` on one repo; to put a file above a chain of `depth` branches; to list
    `job_sets` job sets, and `branches` branches of one repo, with python-pachyderm. All sizes are above 3."""
    results = [_created("create pipelines", pipelines)]
    for what, size, grow, look in (
        ("put above branches", depth, _chain, _put),
        ("list job sets", job_sets, _jobs, _list_job_sets),
        ("list branches", branches, _branches, _list_branches),
    ):
        with servers.localpachd() as server:
            results.append(_measured(what, size, server.client(), grow, look, rounds))
    return Result(
        tuple(row for rows, _ in results for row in rows), tuple(each for _, lines in results for each in lines)
    )


Measured = tuple[list[Row], list[Line]]


def _created(what: str, number: int) -> Measured:
    """The seconds until half of the pipelines are there, and until all are."""
    with servers.localpachd() as server:
        client = server.client()
        client.create_repo(_REPO)
        first = timed(lambda: _make_pipelines(client, range(number // 2)))
        rest = timed(lambda: _make_pipelines(client, range(number // 2, number)))
    return _shown(what, number, first, first + rest)


def _make_pipelines(client: python_pachyderm.Client, numbers: range) -> None:
    for number in numbers:
        _make_pipeline(client, f"pipeline-{number}", "true")


def _make_pipeline(client: python_pachyderm.Client, name: str, *command: str) -> None:
    client.create_pipeline(
        name,
        transform=pps_pb2.Transform(cmd=list(command)),
        input=pps_pb2.Input(pfs=pps_pb2.PFSInput(repo=_REPO, glob="/*")),
    )


def _measured(
    what: str,
    size: int,
    client: python_pachyderm.Client,
    grow: Callable[[python_pachyderm.Client, range], None],
    look: Callable[[python_pachyderm.Client], Look],
    rounds: int,
) -> Measured:
    """The best of several rounds of a call at half of the size, and at the size."""
    client.create_repo(_REPO)
    client.put_file_bytes((_REPO, "master"), "/file", b"content")
    asked = look(client)
    grow(client, range(size // 2))
    (half,) = interleaved(rounds, lambda: timed(asked))
    grow(client, range(size // 2, size))
    (whole,) = interleaved(rounds, lambda: timed(asked))
    return _shown(what, size, half, whole)


def _shown(what: str, size: int, half: float, whole: float) -> Measured:
    section = f"{what}, {size:,}"
    bound = half * allowed(size // 2, size)
    rows = [Row(section, "ours", whole), Row(section, "bound", bound)]
    return rows, [line(section, whole, bound, "s", "n log n", whole <= bound, 3)]


def _chain(client: python_pachyderm.Client, numbers: range) -> None:
    """Makes each branch subvenant to the one before."""
    for number in numbers:
        client.create_repo(f"below-{number}")
        above = f"below-{number - 1}" if number else _REPO
        client.create_branch(f"below-{number}", "master", provenance=[_branch(above)])


def _branch(repo: str) -> pfs_pb2.Branch:
    return pfs_pb2.Branch(repo=pfs_pb2.Repo(name=repo, type="user"), name="master")


def _put(client: python_pachyderm.Client) -> Look:
    return lambda: client.put_file_bytes((_REPO, "master"), "/file", b"changed")


def _jobs(client: python_pachyderm.Client, numbers: range) -> None:
    """Makes a job for each number; the first one keeps the others waiting."""
    if not numbers.start:
        _make_pipeline(client, "waits", "sleep", "3600")
    for number in numbers:
        client.put_file_bytes((_REPO, "master"), f"/{number}", b"changed")


def _list_job_sets(client: python_pachyderm.Client) -> Look:
    return lambda: _taken(client.list_job())


def _branches(client: python_pachyderm.Client, numbers: range) -> None:
    for number in numbers:
        client.create_branch(_REPO, f"branch-{number}", head_commit=(_REPO, "master"))


def _list_branches(client: python_pachyderm.Client) -> Look:
    return lambda: _taken(client.list_branch(_REPO))


def _taken(found: Iterator[object]) -> int:
    """Takes all that a listing yields."""
    return sum(1 for _ in found)
