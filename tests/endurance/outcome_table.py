"""The outcome of an endurance run as a table, and as JSON."""

import math
from collections.abc import Sequence

from tests.endurance.fuzz_client import FuzzClient
from tests.endurance.rounds import Endurance

_FLAT = 1.10


def shares(memory: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The mean memory in each half of the last half of a run, in MiB. The first half is left out: a server that starts
    fills its caches."""
    end = memory[-1][0]
    third = [mib for seconds, mib in memory if end / 2 <= seconds < end * 3 / 4]
    fourth = [mib for seconds, mib in memory if seconds >= end * 3 / 4]
    return _mean(third), _mean(fourth)


def flat(memory: Sequence[tuple[float, float]]) -> bool:
    """Whether the last quarter of a run needed at most a tenth more memory than the one before."""
    third, fourth = shares(memory)
    return fourth <= _FLAT * third


def lines(run: Endurance, fuzzing: FuzzClient | None, hours: float) -> list[str]:
    """The rows of the table in docs/reliability.md."""
    outcome = run.outcome
    acknowledged = run.killed_load.acknowledged + run.steady_load.acknowledged
    starts = run.killed.start_seconds
    third, fourth = shares(outcome.memory)
    rows = [
        ("time", f"{hours:.2f} hours, seed {run.seed}"),
        ("rounds", f"{outcome.kills:,} kills, {outcome.cuts:,} cuts of power"),
        ("acknowledged changes", f"{acknowledged:,}"),
        ("problems (lost, damaged, left running, refused)", f"{len(outcome.problems):,}"),
        ("start after a kill or cut, s", f"median {percentile(starts, 50):.2f}, 95 % {percentile(starts, 95):.2f}"),
        ("end after SIGTERM, s", f"at most {max(outcome.stop_seconds):.2f}"),
        ("memory of the server left alone, MiB", f"third quarter {third:.0f}, fourth {fourth:.0f}"),
        ("memory before each kill, MiB", f"at most {max(outcome.peaks):.0f}"),
        ("disk of the killed one, MiB", f"first {outcome.disk[0][0]:.0f}, last {outcome.disk[-1][0]:.0f}"),
        ("disk of the one left alone, MiB", f"first {outcome.disk[0][1]:.0f}, last {outcome.disk[-1][1]:.0f}"),
    ]
    if fuzzing is not None:
        rows.append(("random calls", f"{sum(fuzzing.codes.values()):,}, {len(fuzzing.problems):,} wrong answers"))
    for kind, seconds in sorted(run.steady_load.timings.seconds.items()):
        rows.append((f"{kind}, ms", f"median {percentile(seconds, 50) * 1e3:.1f}, "
                     f"95 % {percentile(seconds, 95) * 1e3:.1f}, of {len(seconds):,}"))  # fmt: skip
    return [f"| {name} | {value} |" for name, value in rows]


def percentile(values: Sequence[float], share: float) -> float:
    """The least of the values that `share` per cent of them do not exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * share / 100) - 1)]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan
