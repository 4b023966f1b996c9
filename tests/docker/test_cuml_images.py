"""cuML in the built images: on a machine with a GPU it searches, on any other it is imported."""

import os
import shutil
import subprocess
import tomllib

import pytest
from contents import PREFIX, PROJECT

from stages.datum.visible_gpus import gpu_visible

VERSION = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]

IMPORT = "import cupy, stages.knn.cuml_backend as backend; print(cupy.cuda.runtime.runtimeGetVersion() // 1000)"
SEARCH = """
import numpy as np
from stages.knn.bound_deviation import BoundExamination
rows = np.random.default_rng(0).normal(size=(4096, 64)).astype(np.float32)
print(BoundExamination().examine(backend.CumlBackend, backend.CumlBackend(rows), rows))
"""

pytestmark = [pytest.mark.docker, pytest.mark.timeout(600)]


@pytest.mark.parametrize(("name", "cuda"), [("rapids", "12"), ("rapids-cuda13", "13")])
def test_cuml_works_in_its_image(name: str, cuda: str) -> None:
    tag = f"{PREFIX}{name}:{VERSION}"
    if shutil.which("docker") is None or subprocess.run(["docker", "info"], capture_output=True).returncode:
        pytest.skip("no Docker engine is running")
    if subprocess.run(["docker", "inspect", tag], capture_output=True).returncode:
        pytest.skip(f'{tag}: not built here; run make images ONLY="{name}"')
    gpu = gpu_visible(os.environ)
    command = ["docker", "run", "--rm", "--network=none", *(["--gpus=all"] if gpu else []), tag, "python3", "-c"]
    done = subprocess.run([*command, IMPORT + SEARCH * gpu], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == cuda
