"""Runs of the fuzzer: one input again, and changes by a seed."""

import sys
from pathlib import Path

import pytest

from tests.fuzz import __main__ as program
from tests.fuzz.mutations import mutations


def test_one_input_can_be_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "input").write_bytes(b"a/b.jpg")

    def again(target: str) -> int:
        monkeypatch.setattr(sys, "argv", ["tests.fuzz", target, "--input", str(tmp_path / "input")])
        return program.main()

    assert again("names") == 0
    with pytest.raises(SystemExit, match="2"):
        again("nothing")


def test_the_same_seed_makes_the_same_changes() -> None:
    seeds, words = [b"abcdef", b""], [b"word"]
    made = list(mutations(seeds, words, 200, seed=3))
    assert made == list(mutations(seeds, words, 200, seed=3)) != list(mutations(seeds, words, 200, seed=4))
    assert len(set(made)) > 100
