"""Tests of localpachd itself talk to localpachd, whatever PACHD_ADDRESS says."""

from typing import Any

import pytest
import python_pachyderm


@pytest.fixture(scope="session")
def client(localpachd: Any) -> python_pachyderm.Client:
    """The official client, connected to the shared localpachd."""
    return localpachd.client()
