"""The origin of vectors in files: a backend is stated only if it is not the usual one, and is always compared."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from stages.record import origin
from stages.record.origin import BACKENDS, TENSORFLOW, Origin

USUAL = Origin("5eed" * 16, "pad", 96, 4, "small at 96 px", ("cpu",))


@given(st.sampled_from(list(BACKENDS)), st.sampled_from(["", "small at 96 px"]), st.lists(st.text(), max_size=3))
def test_an_origin_is_read_as_it_was_written(backend: str, named: str, devices: list[str]) -> None:
    written = replace(USUAL, backend=backend, backbone=named, devices=tuple(devices))
    assert Origin.parse(written.metadata(origin.ALL), origin.ALL) == written
    assert Origin.parse(json.loads(json.dumps(written.as_data())), origin.ALL) == written
    compared = Origin.parse(written.metadata(origin.COMPARED), origin.COMPARED)
    assert compared == replace(written, devices=())
    stated = [written.metadata(names).get("backend") for names in (origin.ALL, origin.COMPARED)]
    assert stated == [None if backend == TENSORFLOW else backend] * 2


@pytest.mark.parametrize("other", ["jax", "torch"])
def test_two_backends_are_two_kinds_of_vectors_of_one_model(other: str) -> None:
    another = replace(USUAL, backend=other)
    assert not USUAL.comparable(another)
    assert USUAL.comparable(replace(USUAL, devices=("NVIDIA H200",), backbone="another name"))
    assert USUAL.mismatch(another, "segment a", "the entry b") == (
        f"segment a was computed on TensorFlow, the entry b on {BACKENDS[other]}: equal pictures would have different "
        "vectors. Set one KERAS_BACKEND for features and features-queries."
    )
    assert "on" not in USUAL.named.split() or another.named == f"{USUAL.named} on {BACKENDS[other]}"
