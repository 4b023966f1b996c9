"""The commands that need no server: what they print, write, and how they exit."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from pipelines.commands.program import app
from pipelines.errors import LookalikeError
from pipelines.specifications import optional_specs, pipeline_specs
from tests.command import terminal_of

GOOD: dict[str, Any] = {
    "pipeline": {"name": "p"},
    "input": {"pfs": {"repo": "queries", "glob": "/*"}},
    "transform": {"image": "shell:1", "cmd": ["true"]},
}
Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Types a command in a directory of the test's own, on a terminal of so many columns."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, columns: int = 120) -> Any:
        with terminal_of(columns):
            return CliRunner().invoke(app, arguments)

    return run


def write(name: str = "p", **fields: Any) -> None:
    Path("specs").mkdir(exist_ok=True)
    Path("specs", f"{name}.json").write_text(json.dumps({**GOOD, **fields}, indent=1))


def test_only_errors_make_a_check_fail(run: Run) -> None:
    write()
    done = run("check", "specs/p.json")
    assert (done.exit_code, done.stdout) == (0, "1 specification checked: no problems found\n")
    write(transform={"image": "shell", "cmd": ["true"]})
    done = run("check", "specs")
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "1 specification checked: 1 warning")


def test_a_finding_is_printed_with_its_place_and_fix(run: Run) -> None:
    write(autoscaling="yes")
    done = run("check", "specs")
    assert (done.exit_code, done.stderr) == (1, "")
    assert done.stdout == (
        'error specs/p.json:17 autoscaling\n  must be true or false, not "yes"\n  → write true\n'
        "1 specification checked: 1 error\n"
    )
    done = run("check", "specs", "--json")
    assert done.exit_code == 1
    (finding,) = json.loads(done.stdout)["findings"]
    assert (finding["level"], finding["field"], finding["line"]) == ("error", "autoscaling", 17)


def test_a_flaw_of_several_specifications_is_printed_once(run: Run) -> None:
    write("one", pipeline={"name": "one"}, datum_set_spec={})
    write("two", pipeline={"name": "two"}, datum_set_spec={})
    Path("specs", "three.json").write_text("{")
    lines = run("check", "specs").stdout.splitlines()
    assert lines[:3] == [
        "error specs/one.json:17 datum_set_spec",
        "error specs/two.json:17 datum_set_spec",
        "  is empty: the worker divides by its per_worker of zero, and its jobs never end",
    ]
    assert "error specs/three.json:1" in lines
    assert lines[-1] == "3 specifications checked: 3 errors"


@pytest.mark.parametrize("wrong", [["gone"], ["--overlay", "ekz"], ["--against", "images=gone"], ["--bogus"]])
def test_a_wrong_command_line_has_an_exit_code_of_its_own(run: Run, wrong: list[str]) -> None:
    assert run("check", *wrong).exit_code == 2


@pytest.mark.parametrize("columns", [40, 60, 80, 120, 300])
def test_findings_fit_the_terminal(run: Run, columns: int) -> None:
    write(datum_set_spec={}, resource_limits={"gpu": {"number": 1}}, transform={})
    lines = run("check", "specs", columns=columns).stdout.splitlines()
    assert max(map(len, lines)) <= min(max(columns, 60), 120)
    assert len(lines) > 10


def test_names_cannot_write_on_the_terminal(run: Run) -> None:
    odd: dict[str, Any] = {"[red]\x1b[31m": 1}
    write(**odd)
    assert '["[red]\\u001b[31m"]\n' in run("check", "specs").stdout


def test_datums_are_counted_against_directories(run: Run) -> None:
    write()
    for name in ("a", "b", "c"):
        Path("pictures", name).mkdir(parents=True)
        Path("pictures", name, "x.jpg").touch()
    for against in ("pictures", "queries=pictures"):
        assert "  this gives 3 datums\n" in run("check", "specs", "--against", against).stdout
    assert "datums" not in run("check", "specs", "--against", "images=pictures").stdout


def test_specifications_are_written_with_overlays(run: Run) -> None:
    done = run("specs", "--overlay", "eci", "-o", "out")
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "wrote out/image-cache.yaml")
    written = json.loads(Path("out", "index.json").read_text())
    assert written["scheduling_spec"] == {"node_selector": {"type": "virtual-kubelet"}}
    count = len(optional_specs.files(pipeline_specs.SHIPPED_SPECS))
    assert run("check", "out").stdout.splitlines()[-1] == f"{count} specifications checked: 11 notes"
    write(transfrom={})
    done = run("specs", "--specs", "specs", "-o", "other")
    assert isinstance(done.exception, LookalikeError)
    assert str(done.exception).startswith("specs/p.json:17: transfrom: Pachyderm does not know this field")
    assert not Path("other").exists()
