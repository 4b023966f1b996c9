"""Runs the steps on a machine with a GPU, each in a process of its own and with a limit of its own:

    python3 -m studies.gpu.prove --set all --seconds 3600 --out DIR    where everything is installed
    python3 -m studies.gpu.prove --site SITE --out DIR [--seconds 420] [STEP ...]
    python3 -m studies.gpu.prove --rehearse --out DIR    on a processor, small, with stand-ins for the GPU's packages

DIR/summary.json is written as soon as a step ends; at the end DIR/all.json has all findings, DIR/all.log the output. A
step that fails or takes too long costs no other; one that no longer fits into --seconds is named and left out. The last
lines say which goals are met (studies.gpu.goals).
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, NamedTuple

from stages.record.origin import BACKENDS
from studies.gpu import goals

ROOT = Path(__file__).parents[2]
REHEARSAL = Path(__file__).parent / "rehearsal"
LEAST = 15
"""Seconds below which no step is started."""

_STOPPING = 30
"""Seconds that a step gets for its end."""

_NVJITLINK = Path("nvidia", "cu13", "lib", "libnvJitLink.so.13")


class Step(NamedTuple):
    """A step: its module of this package, the most seconds that it gets, and whether it sees the carried packages."""

    module: str
    seconds: int
    carried: bool = True


STEPS = {
    "card": Step("machine", 40),
    "bound": Step("bound", 60, carried=False),
    "cuml_alone": Step("search", 100),
    "self_test": Step("search", 90),
    "certified": Step("search", 160),
    "cuml_tests": Step("machine", 160),
    "million": Step("search", 120),
    "peers": Step("peers", 90),
    "shortage": Step("search", 90),
    "codes": Step("search", 120),
    "keras_alone": Step("models", 150),
    "features": Step("features", 150),
    "fraction": Step("features", 60),
    "tensorflow_tests": Step("machine", 210),
    "dag": Step("dag", 900),
}
"""In order of worth."""

SETS = {
    "all": tuple(name for name in STEPS if name != "bound"),  # PyTorch's, which TensorFlow's CUDA libraries exclude
    "knn": tuple(STEPS)[:10],
    "keras": ("keras_alone", "features"),
    "tensorflow": ("features", "fraction", "tensorflow_tests"),
}
"""The steps for each set of packages: those that studies.gpu.prepare packs, and an environment with everything."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the steps that the arguments (the command line's by default) name; 1 if one of them failed."""
    given = _parser().parse_args(arguments)
    names = given.steps or SETS[given.set]
    given.out.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    summary, found, logs = {}, {}, []
    for name in names:
        left = given.seconds - (time.monotonic() - start)
        if left < LEAST:
            summary[name] = "left out: no time"
        else:
            summary[name], found[name], log = _run(name, min(STEPS[name].seconds, left), given)
            logs.append(f"==== {name}\n{log}")
        print(f"{name}: {summary[name]}", flush=True)
        (given.out / "summary.json").write_text(json.dumps(summary, indent=1))
        (given.out / "all.json").write_text(json.dumps(found, indent=1))
        (given.out / "all.log").write_text("\n".join(logs))
    for line in goals.lines(found):
        print(line)
    return int(any(not said.startswith("done") for said in summary.values()))


def _run(name: str, limit: float, given: argparse.Namespace) -> tuple[str, Any, str]:
    """How the step ended, its findings, and the end of its output."""
    result, output = given.out / f"{name}.json", given.out / f"{name}.log"
    result.unlink(missing_ok=True)
    command = [sys.executable, "-P", "-m", f"{__package__}.{STEPS[name].module}", name, str(result.resolve())]
    environment = {**os.environ, **_environment(STEPS[name].carried, given)}
    start = time.monotonic()
    with output.open("w") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=subprocess.STDOUT, env=environment, cwd=ROOT, start_new_session=True
        )
        try:
            code = process.wait(limit)
            said = f"{f'failed ({code})' if code else 'done'} in {time.monotonic() - start:.1f} s"
        except subprocess.TimeoutExpired:
            process.terminate()  # so that it can stop a server that it started
            with suppress(subprocess.TimeoutExpired):
                process.wait(_STOPPING)
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            said = f"ended after {limit:.0f} s"
    log = output.read_text()[-6000:]
    # A step that cannot import its packages writes no findings: its output says why.
    found = json.loads(result.read_text()) if result.exists() else {"notes": {}, "failure": log}
    for path in (result, output):
        path.unlink(missing_ok=True)
    return said, found, log


def _environment(carried: bool, given: argparse.Namespace) -> dict[str, str]:
    site = given.site.resolve() if carried and given.site else None
    stand_ins = [REHEARSAL] if given.rehearse and given.set == "knn" else []  # Keras computes on real packages
    paths = [*stand_ins, *([site] if site else []), ROOT]
    environment = {
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PYTHONUNBUFFERED": "1",
        "TF_CPP_MIN_LOG_LEVEL": "1",
        "REHEARSAL": str(int(given.rehearse)),
    }
    if site and (site / _NVJITLINK).exists():
        # PyTorch would load the machine's older one, under the same name, in which cuVS does not find its functions.
        environment["LD_PRELOAD"] = str(site / _NVJITLINK)
    if given.set == "keras":
        name = given.keras or backend(paths)
        environment |= {"KERAS_BACKEND": name, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    return environment


def backend(paths: Sequence[Path]) -> str:
    """The first backend of Keras that is in these directories or among this machine's packages."""
    where = [*map(str, paths), *sys.path]
    return next((name for name in BACKENDS if PathFinder.find_spec(name, where) is not None), "jax")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 -m studies.gpu.prove", description="Proves and measures lookalike on a GPU."
    )
    add = parser.add_argument
    add("steps", nargs="*", type=_step, metavar="STEP", help=", ".join(STEPS))
    add("--set", choices=tuple(SETS), default="knn", help="which packages there are: their steps")
    add(
        "--site",
        type=Path,
        metavar="DIR",
        help="where the pieces were unpacked; by default the machine has all packages",
    )
    add("--out", type=Path, required=True, metavar="DIR", help="for the findings")
    add("--seconds", type=float, default=420, metavar="N", help="for all steps")
    add("--keras", metavar="NAME", help=f"Keras's backend for --set keras: {', '.join(BACKENDS)}; else the first there")
    add("--rehearse", action="store_true", help="run small on a processor, with stand-ins for CuPy, cuML and PyTorch")
    return parser


def _step(name: str) -> str:
    if name not in STEPS:
        raise argparse.ArgumentTypeError(f"{name} is not one of {', '.join(STEPS)}")
    return name


if __name__ == "__main__":
    sys.exit(main())
