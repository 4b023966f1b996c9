"""Jsonnet templates of specifications. Each is evaluated in a process of its own, since it is a program and must not
block or crash the server. Imports come from the web only, so that no template reads files of this machine, and from
addresses that the server may reach.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping

from localpachd.errors import PachError
from localpachd.storage.url_reach import UrlReach

TIME_LIMIT = 60.0
"""Seconds that a template may take."""


def render(template: str, arguments: Mapping[str, str], reach: UrlReach) -> str:
    """The JSON text that a template evaluates to with these top-level arguments, all of them strings. `reach` holds the
    networks that it may import from."""
    networks = [str(each) for each in reach.networks]
    asked = {
        "template": template,
        "arguments": dict(arguments),
        "networks": networks,
        "parent": os.getpid(),
        "seconds": 2 * int(TIME_LIMIT),  # of processor time, in case the timeout below fails
    }
    try:
        run = subprocess.run(
            [sys.executable, "-m", "localpachd.pps.specs.jsonnet"],
            input=json.dumps(asked), capture_output=True, text=True, timeout=TIME_LIMIT, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise PachError(f"template err: it takes more than {TIME_LIMIT:.0f} seconds") from None
    if run.returncode != 0:
        last = (run.stderr.strip().splitlines() or [f"exit status {run.returncode}"])[-1]
        raise PachError(f"template err: the evaluation failed: {last}")
    said: dict[str, str] = json.loads(run.stdout)
    if "error" in said:
        raise PachError(f"template err: {said['error']}")
    return said["json"]
