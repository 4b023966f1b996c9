"""The server's memory and disk space as its history grows and its content does not."""

import python_pachyderm

from benchmarks.kit import servers
from benchmarks.kit.report import Line, Result, Row, line
from benchmarks.server import datums, files

FILES = 20
_ALLOWED = 1.1
"""The largest ratio of memory at the end to memory after a third of the history that counts as no growth."""


def measure_history(commits: int) -> Result:
    """One file of `FILES` is replaced `commits` times, each time with a job that processes it; memory after a third of
    the commits and after all of them. The bound is a bare gRPC server in Python that knows the same messages."""
    section = f"history of {commits} commits"
    with servers.localpachd() as server, servers.bare("put") as null:
        client = server.client()
        client.create_repo("in")
        files.put(client, "in", FILES)
        datums.create(client, "nothing", batched=False)
        datums.wait(client, "nothing")
        seconds = _changes(client, commits // 3)
        early, early_disk = server.memory, server.disk()
        late_commits = commits - commits // 3
        later = _changes(client, late_commits)
        late, late_disk = server.memory, server.disk()
        rows = (
            Row(section, "a third", seconds, commits // 3 / seconds, early),
            Row(section, "ours", seconds + later, commits / (seconds + later), late),
            Row(section, "bound", peak_mib=null.peak),
        )
        lines = (
            line(f"memory after a {section}", late, null.peak, "MiB"),
            _growth("growth over the last two thirds", early, late),
            line("disk per commit", 1024 * (late_disk - early_disk) / late_commits, None, "KiB"),
        )
    return Result(rows, lines)


def _changes(client: python_pachyderm.Client, number: int) -> float:
    return sum(datums.change(client, "nothing") for _ in range(number))


def _growth(what: str, early: float, late: float) -> Line:
    return line(what, late, early, "MiB", "not more than noise (10 %)", late <= _ALLOWED * early)
