"""Fuzzes the code that reads what others wrote, target by target, and ends with a table: `make fuzz`."""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from tests.fuzz import registry, runs
from tests.fuzz.runs import Outcome

_SECONDS = 10
_ROW = "{:<24}{:>14}{:>10}{:>10}{:>8}{:>8}"


def main() -> int:
    known = {each.name: (module, each) for module in registry.PACKAGES for each in registry.targets(module)}
    parser = argparse.ArgumentParser(prog="tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"all by default: {', '.join(known)}")
    parser.add_argument("--runs", type=int, default=0, metavar="N", help="executions of each target")
    parser.add_argument("--seconds", type=int, metavar="S", help=f"for each target; {_SECONDS} without --runs")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="targets at a time")
    parser.add_argument("--into", type=Path, default=Path(".fuzz"), metavar="DIR", help="the corpora, which are kept")
    parser.add_argument("--input", type=Path, metavar="FILE", help="run the one target on this file alone")
    args = parser.parse_args()
    unknown = [each for each in args.targets if each not in known]
    if unknown:
        parser.error(f"unknown target {unknown[0]}: the targets are {', '.join(known)}")
    if args.input:
        for name in args.targets:
            known[name][1].run(args.input.read_bytes())
        return 0
    if find_spec("atheris") is None:
        parser.error("atheris is not installed here: make fuzz installs it apart")
    seconds = args.seconds if args.seconds is not None else 0 if args.runs else _SECONDS
    chosen = [known[name] for name in args.targets or known]
    with ThreadPoolExecutor(args.jobs) as threads:
        futures = [threads.submit(runs.run, module, each, args.into, args.runs, seconds) for module, each in chosen]
        outcomes = []
        print(_ROW.format("target", "executions", "a second", "coverage", "MiB", "faults"))
        for each in futures:
            outcomes.append(each.result())
            print(_row(outcomes[-1]), flush=True)
    print(_ROW.format("all", f"{sum(each.executions for each in outcomes):,}", "", "", "", _faults(outcomes)))
    return _told(outcomes)


def _row(each: Outcome) -> str:
    rate, coverage, memory = f"{each.rate:,}", f"{each.coverage:,}", f"{each.memory:,}"
    return _ROW.format(each.name, f"{each.executions:,}", rate, coverage, memory, _faults([each]))


def _faults(outcomes: Sequence[Outcome]) -> int:
    return sum(max(len(each.faults), not each.ended_well) for each in outcomes)


def _told(outcomes: Sequence[Outcome]) -> int:
    for each in outcomes:
        if each.faults or not each.ended_well:
            print(f"{each.name}: see {each.log}", *each.faults, file=sys.stderr)
    return 1 if any(not each.ended_well or each.faults for each in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
