"""The service of searches as a bare program, `python -m stages.serve`. See stages.serving.run.standalone."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from stages.serving.run import standalone
from stages.serving.run.standalone import Program

PROGRAM = Program("serve", Path("/secrets/lookalike-serve"), 30680, True, "index", "the index")


def main() -> NoReturn:
    """See standalone.main."""
    standalone.main(PROGRAM)


if __name__ == "__main__":
    main()
