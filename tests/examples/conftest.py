"""Fixtures of the examples: pipelines in published shapes, run by a localpachd.

Each example is a directory with specifications and user code as people publish them, and a test that does what its
readers would do. `/code/` in a specification is where its image would hold the code: here it is the directory itself.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from localpachd.worker.machine import namespaces
from tests.examples.example import Example
from tests.servers import Pachd, Unique


@pytest.fixture(scope="session")
def _mounted(tmp_path_factory: pytest.TempPathFactory) -> bool:
    return namespaces.detect(tmp_path_factory.mktemp("probe")).mounts


@pytest.fixture
def example(_mounted: bool, localpachd: Pachd, unique: Unique, request: pytest.FixtureRequest) -> Iterator[Example]:
    """The example of the test's module, in the directory beside it: `test_opencv.py` has `opencv/`."""
    if not _mounted:
        pytest.skip("/pfs cannot be mounted here, and the examples' code reads it")
    here = Path(request.path)
    made = Example(localpachd.client(), unique(here.stem[5:].replace("_", "-")), here.with_name(here.stem[5:]))
    yield made
    made.close()
