"""Files of others are read as data: no module of any package loads pickles or models that may run code of their own."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = (
    "benchmarks",
    "docker",
    "localpachd",
    "lookalike",
    "pipelines",
    "setup",
    "speclang",
    "stages",
    "studies",
    "towers",
)
RUNS_CODE = frozenset(("pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"))

# Reads weights of PyTorch, with an unpickler that knows tensors and dictionaries only:
# tests/stages/backbone/test_torch_file.py.
UNPICKLER = "stages/backbone/torch_file.py"


def faults(code: str, name: str) -> Iterator[str]:
    """The places of a module that load a file in a way that may run code."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
            if name != UNPICKLER and RUNS_CODE & {each.partition(".")[0] for each in modules}:
                yield f"{name}:{node.lineno} imports {', '.join(modules)}"
        if isinstance(node, ast.Call):
            yield from (f"{name}:{node.lineno} {text}" for text in _calls(node))


def _calls(call: ast.Call) -> Iterator[str]:
    function = call.func
    called = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    owner = function.value.id if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name) else ""
    given = {each.arg: getattr(each.value, "value", None) for each in call.keywords}
    if called == "load_model" and given.get("safe_mode") is not True:
        yield "load_model without safe_mode=True"
    # NumPy's default is False.
    if (
        given.get("allow_pickle", False) is not False
        or given.get("safe_mode") is False
        or called == "enable_unsafe_deserialization"
    ):
        yield "unsafe loading turned on"
    if owner in ("yaml", "torch") and called in ("load", "load_all", "unsafe_load", "full_load"):
        yield f"{owner}.{called}"
    if called in ("eval", "exec") and not owner:
        yield called


def test_no_module_loads_files_that_may_run_code() -> None:
    modules = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    assert len(modules) > 500
    found = [fault for path in modules for fault in faults(path.read_text(), path.relative_to(ROOT).as_posix())]
    assert found == []


@pytest.mark.parametrize(
    "code",
    [
        "import pickle", "from pickle import loads", "import joblib", "import numpy.x, shelve", "load_model(path)",
        "keras.saving.load_model(path, safe_mode=False)", "keras.models.load_model(path)", "np.load(f, allow_pickle=x)",
        "np.load(f, allow_pickle=True)", "x.read(allow_pickle=True)", "yaml.load(f)", "torch.load(f)", "eval(text)",
        "keras.config.enable_unsafe_deserialization()",
    ],
)  # fmt: skip
def test_each_such_way_is_found(code: str) -> None:
    assert len(list(faults(code, "module.py"))) >= 1


@pytest.mark.parametrize(
    "code",
    ["np.load(f, allow_pickle=False)", "load_model(p, safe_mode=True)", "json.load(f)", "model.eval()", "import ast"],
)
def test_other_ways_are_not(code: str) -> None:
    assert list(faults(code, "module.py")) == []
