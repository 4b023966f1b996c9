"""The service of the promoted classifier as a bare program, `python -m stages.classify_serve`. See
stages.serving.run.service_program.

It follows the branch `production` of the repo `select`, and needs neither the index nor the library.
"""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from stages.serving.run import service_program
from stages.serving.run.service_program import ServiceProgram

PROGRAM = ServiceProgram(
    "classify-serve", Path("/secrets/lookalike-classify-serve"), 30681, False, "select", "the model"
)


def main() -> NoReturn:
    """See service_program.main."""
    service_program.main(PROGRAM)


if __name__ == "__main__":
    main()
