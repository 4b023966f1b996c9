"""Tests of localpachd itself use localpachd, even if PACHD_ADDRESS is set."""

import pytest
import python_pachyderm

from tests.servers import Pachd


@pytest.fixture(scope="session")
def client(localpachd: Pachd) -> python_pachyderm.Client:
    """The official client, connected to the shared localpachd."""
    return localpachd.client()
