"""The pachctl programs that tests try: those that PACHCTL names, separated by colons, or the one on the PATH."""

import os
import shutil

import pytest


def _programs() -> list[object]:
    named = [each for each in os.environ.get("PACHCTL", "").split(":") if each]
    found = shutil.which("pachctl")
    return [*(named or ([found] if found else []))]


PROGRAMS = _programs() or [pytest.param("", marks=pytest.mark.skip(reason="pachctl is not on the PATH"))]
"""The parameters of a test or fixture that runs each program; without any it is skipped."""
