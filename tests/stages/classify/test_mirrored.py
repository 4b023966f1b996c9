"""Several devices train together: on virtual ones of the CPU, results equal those of one but for rounding."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stages import devices
from tests.stages.classify import mirrored, tuned


def train(directory: Path, number: int) -> Any:
    """What mirrored.py prints last."""
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, mirrored.__file__, str(directory), str(number)],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(root)},
    )
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.timeout(400)
def test_two_devices_learn_as_one_does(tmp_path: Path) -> None:
    devices.prepare({})
    tuned.written(tmp_path, tuned.backbone(), *tuned.pictures(20))
    one, two = train(tmp_path, 1), train(tmp_path, 2)
    assert (one["devices"], two["devices"]) == (1, 2)
    assert one["weights"] == two["weights"]
    assert max(one["saved"], two["saved"]) < 1e-4
    for curves in (one["curves"], two["curves"]):
        assert curves["loss"][-1] < curves["loss"][0] - 0.1
    # Dropout differs, since each device draws its own; all else is the same but for rounding.
    assert np.allclose(one["curves"]["accuracy"], two["curves"]["accuracy"], atol=0.15)
    assert abs(one["held_out"][0] - two["held_out"][0]) < 0.4
    assert one["apart"] == 0
