"""The service of searches as a bare program, `python -m stages.serve`. See stages.serving.run.service_program."""

from __future__ import annotations

from pathlib import Path

from stages.serving.run import service_program
from stages.serving.run.service_program import ServiceProgram

PROGRAM = ServiceProgram("serve", Path("/secrets/lookalike-serve"), 30680, True, "index", "the index")


if __name__ == "__main__":
    service_program.main(PROGRAM)
