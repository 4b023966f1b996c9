"""Each target of fuzzing on its seeds, and on the same few hundred changes of them every time: `make fuzz` goes on."""

import logging
from collections.abc import Iterator

import pytest

from tests.fuzz import registry
from tests.fuzz.mutations import mutations
from tests.fuzz.target import Target

_TARGETS = [each for module in registry.PACKAGES for each in registry.targets(module)]
_CHANGES = 300


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Without the server's lines about what it leaves out."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("target", _TARGETS, ids=lambda target: target.name)
def test_every_input_is_read_or_refused(target: Target) -> None:
    seeds = list(dict.fromkeys(target.seeds()))
    for data in (b"", *seeds, *mutations(seeds, target.words, _CHANGES, seed=1)):
        try:
            target.run(data[: target.longest])
        except Exception as error:
            pytest.fail(f"{target.name}: {error!r} for {data[: target.longest]!r}")


def test_names_are_unique() -> None:
    assert len({target.name for target in _TARGETS}) == len(_TARGETS)
