"""Several devices train together: on virtual ones of the CPU, results equal those of one but for rounding."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from stages.backbone import devices
from tests.stages.classify import finetuning_sets, virtual_devices


@pytest.mark.timeout(400)
def test_two_devices_learn_as_one_does(tmp_path: Path) -> None:
    devices.prepare({})
    finetuning_sets.written(tmp_path, finetuning_sets.backbone(), *finetuning_sets.pictures(20))
    one = virtual_devices.results(tmp_path)
    done = subprocess.run(
        [sys.executable, virtual_devices.__file__, str(tmp_path), "2"],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
    )
    two = json.loads(done.stdout.splitlines()[-1])
    assert (one["devices"], two["devices"]) == (1, 2)
    assert one["weights"] == two["weights"]
    assert one["curves"]["loss"][-1] < one["curves"]["loss"][0] - 0.1
    for name in ("loss", "validation_loss"):
        assert np.allclose(one["curves"][name], two["curves"][name], rtol=0.02)
    assert np.allclose(one["held_out"], two["held_out"], atol=0.1)
    for each in (one, two):
        assert np.allclose(each["held_out"], each["saved"], atol=1e-4)
