"""Programs that decode pictures as stages.decode.decoder_processes does, with decoders that crash or meet."""

import sys
from pathlib import Path

BEGIN = """
import os, sys
sys.path[:0] = {path!r}
from stages.decode import decoder_processes, decoders
opened = decoders.open_picture
"""
FAULTY = """
def faulty(data, kind):
    marker = data[-8:-1]
    if marker == b"SIGNAL=":
        os.kill(os.getpid(), data[-1])
    if marker == b"STATUS=":
        os._exit(data[-1])
    return opened(data, kind)
decoders.open_picture = faulty
decoder_processes.main()
"""
"""A process whose decoder crashes on files that end in SIGNAL= or STATUS= and a byte."""


def program(code: str, place: Path) -> list[str]:
    return [sys.executable, "-c", (BEGIN + code).format(path=sys.path, place=str(place))]
