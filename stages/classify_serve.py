"""The service of the promoted classifier as a bare program, `python -m stages.classify_serve`. See
stages.serving.run.service_program.

It follows the branch `production` of the repo `select`, and needs neither the index nor the library.
"""

from __future__ import annotations

from pathlib import Path

from stages.serving.run import service_program
from stages.serving.run.service_program import ServiceProgram

PROGRAM = ServiceProgram(
    "classify-serve", Path("/secrets/lookalike-classify-serve"), 30681, False, "select", "the model"
)


if __name__ == "__main__":
    service_program.main(PROGRAM)
