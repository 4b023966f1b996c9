"""Imports without chatter, and without packages that are not used: of TensorFlow itself, and of modules that fail or
abort."""

import os
import subprocess
import sys

import pytest

from tests.gc_prelude import GC_PRELUDE


def said(code: str, **environment: str) -> tuple[int, str]:
    """The exit status of a program and its output on stderr."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TF_")}
    start = f"{GC_PRELUDE}import os, sys\nfrom stages.backbone import keras_import\n"
    start += "with keras_import.quiet():\n    "
    program = f"{start}{code}\nprint('after', file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], env=clean | environment, capture_output=True, text=True)
    return done.returncode, done.stderr


def test_the_start_of_tensorflow_says_nothing() -> None:
    using = "import tensorflow as tf; tf.config.list_physical_devices('GPU'); tf.zeros(3) + 1"
    assert said(using) == (0, "after\n")


def test_a_failed_import_is_told_with_all_that_it_said() -> None:
    status, text = said("os.write(2, b'no such library\\n'); import nosuch")
    assert status == 1
    assert text.startswith("no such library\n")
    assert "No module named 'nosuch'" in text


def test_the_last_words_of_an_aborted_process_are_told() -> None:
    status, text = said("os.write(2, b'this processor lacks AVX\\n'); os.abort()")
    assert status < 0
    assert "this processor lacks AVX\n" in text


def test_a_level_of_the_environment_is_kept() -> None:
    assert said("os.write(2, b'chatter\\n')", TF_CPP_MIN_LOG_LEVEL="0") == (0, "chatter\nafter\n")
    assert said("os.write(2, b'chatter\\n')") == (0, "after\n")


@pytest.mark.only_in_all
def test_packages_for_data_frames_and_estimators_are_not_imported_but_can_be_afterwards() -> None:
    using = "import keras\nassert not {'pandas', 'sklearn'} & sys.modules.keys(), sorted(sys.modules)\nimport sklearn"
    assert said(using) == (0, "after\n")


def test_other_threads_import_these_packages_meanwhile() -> None:
    elsewhere = "import threading; t = threading.Thread(target=__import__, args=('sklearn',)); t.start(); t.join()"
    assert said(f"{elsewhere}; assert 'sklearn' in sys.modules") == (0, "after\n")
