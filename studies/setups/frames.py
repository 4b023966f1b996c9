"""The frames of a video as bytes on the standard output, with PyAV of pictures.lock: `frames.py VIDEO STEP MOST`. The
first line is the width and the height; then every STEP-th frame, RGB, up to MOST of them."""

import sys
from importlib import import_module
from itertools import islice
from typing import Any

# A name in a string: PyAV is in the directory of the wheels, where a check of types does not look.
av: Any = import_module("av")


def main(video: str, step: str, most: str) -> None:
    with av.open(video) as container:
        for number, frame in enumerate(islice(container.decode(video=0), 0, int(most) * int(step), int(step))):
            if not number:
                sys.stdout.buffer.write(f"{frame.width} {frame.height}\n".encode())
            sys.stdout.buffer.write(frame.to_image().tobytes())


if __name__ == "__main__":
    main(*sys.argv[1:])
