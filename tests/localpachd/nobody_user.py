"""Programs of tests that run as the user nobody, as far as this user can read them."""

import subprocess
import sys
from functools import cache

NOBODY = 65534
AS_NOBODY = ("setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "--")
"""Runs the rest of a command line as nobody, if root does so."""


@cache
def obstacle() -> str:
    """Why nobody cannot run the modules of this checkout, "" if it can: it may lie in a directory of root's."""
    command = [*AS_NOBODY, sys.executable, "-c", "import localpachd.server"]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        return "the user nobody cannot read this checkout: clone it where others may enter"
    return ""
