"""Pictures that a camera takes one after another: the frames of videos, and bursts that are made of photographs. The
videos come in wheels, as does what decodes them, which runs in a process of its own: nothing here imports from there.
Knows no set's use."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from studies.kit.environment import SETUPS, Unavailable

_FRAMES = 12  # of a burst
_BURSTS = 6
_WIDTH = 640  # pixels, of a burst's frames at most
_THING = 0.25  # the width of what moves, as a share of the frame's
_STEP = (0.01, 0.03)  # how far it moves from frame to frame, as a share of the frame's width
_PATCH = 0.02  # the width of what changes in a still life, likewise
_NOISE = 3.0  # the standard deviation of the sensor's noise, of 255


def frames(wheels: Path, video: Path, step: int, most: int) -> Iterator[Image.Image]:
    """Every `step`-th frame of a video file, `most` of them at most. Raises Unavailable if it cannot be decoded."""
    command = [sys.executable, str(SETUPS / "frames.py"), str(video), str(step), str(most)]
    environment = {**os.environ, "PYTHONPATH": str(wheels)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        size = [int(each) for each in process.stdout.readline().split()]
        while size and (pixels := process.stdout.read(size[0] * size[1] * 3)):
            yield Image.frombytes("RGB", (size[0], size[1]), pixels)
    if process.returncode:
        raise Unavailable(f"{video} could not be decoded with PyAV in {wheels}")


def moved(photographs: Mapping[str, Image.Image]) -> Iterator[Image.Image]:
    """What a camera on a tripod takes: a thing, cut from the next photograph, moves across each of the first ones."""
    names = list(photographs)[:_BURSTS]
    for number, name in enumerate(names):
        scene, other = _scene(photographs[name]), _scene(photographs[names[(number + 1) % len(names)]])
        lot = Random(name)
        thing, mask = _thing(other, round(scene.width * _THING))
        left, top = lot.uniform(0, 0.3) * scene.width, lot.uniform(0.3, 0.8) * (scene.height - thing.height)
        for _ in range(_FRAMES):
            frame = scene.copy()
            frame.paste(thing, (round(left), round(top)), mask)
            yield _noisy(frame, lot)
            left += lot.uniform(*_STEP) * scene.width


def still(photographs: Mapping[str, Image.Image]) -> Iterator[Image.Image]:
    """A scene in which only a small thing changes, such as an eye that closes: a patch in its mean colour, elsewhere in
    each frame."""
    for name in list(photographs)[:_BURSTS]:
        scene, lot = _scene(photographs[name]), Random(f"still {name}")
        side = max(4, round(scene.width * _PATCH))
        for _ in range(_FRAMES):
            frame = scene.copy()
            left, top = (lot.randint(each // 4, each * 3 // 4) for each in scene.size)
            box = (left, top, left + side, top + side)
            frame.paste(scene.crop(box).resize((1, 1), Image.Resampling.BOX).resize((side, side)), box)
            yield _noisy(frame, lot)


def _scene(photograph: Image.Image) -> Image.Image:
    scene = photograph.copy()
    scene.thumbnail((_WIDTH, _WIDTH))
    return scene


def _thing(photograph: Image.Image, width: int) -> tuple[Image.Image, Image.Image]:
    """The middle of a photograph, and a mask of an ellipse with a soft edge."""
    middle = photograph.width // 2, photograph.height // 2
    left, top = middle[0] - width // 2, max(0, middle[1] - width // 2)
    thing = photograph.crop((left, top, left + width, min(photograph.height, top + width)))
    mask = Image.new("L", thing.size)
    ImageDraw.Draw(mask).ellipse((3, 3, thing.width - 4, thing.height - 4), 255)
    return thing, mask.filter(ImageFilter.GaussianBlur(1))


def _noisy(frame: Image.Image, lot: Random) -> Image.Image:
    noise = np.random.default_rng(lot.getrandbits(32)).normal(0, _NOISE, (frame.height, frame.width, 3))
    return Image.fromarray(np.rint(np.asarray(frame) + noise).clip(0, 255).astype(np.uint8))
