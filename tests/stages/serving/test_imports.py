"""The imports of the service: it listens at once, so what takes seconds comes later, in a thread."""

import subprocess
import sys

import pytest

_LATER = ("keras", "tensorflow", "sklearn", "faiss")


def test_the_service_listens_before_tensorflow_is_imported() -> None:
    imports = "import sys, stages.serve, stages.serving.run.service_runner"
    program = f"{imports}; print(*[each for each in {_LATER} if each in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("", "")


@pytest.mark.only_in_all
def test_tensorflow_does_not_warn_of_the_models_that_a_service_loads() -> None:
    """Whichever way loads them: Keras has it warn of every model after the fifth."""
    program = (
        "import logging; from pathlib import Path; from stages.datum.file_cache import FileCache; "
        "from stages.serving.follow.backbone_pool import BackbonePool; BackbonePool(FileCache(Path('cache')), {}); "
        "import keras; print(logging.getLogger('tensorflow').getEffectiveLevel())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "40"
