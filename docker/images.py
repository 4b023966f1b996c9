"""Builds, measures and pushes the container images (`make images`), with their tags and labels.

Standard library only. The version and the labels come from pyproject.toml, the revision from git. The content of the
images is in the Dockerfile and docker/contents.py.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from contents import PREFIX, PROJECT, VARIANTS, environments

BASE = "python:3.11-slim-bookworm"
LARGEST = {"cpu": 0.6e9, "tensorflow": 6e9, "rapids": 8e9, "rapids-cuda13": 5.8e9, "serve": 6.5e9}
"""The largest size of each image in bytes, unpacked."""

_CONTEXT = ("docker", "specs", "stages", "pyproject.toml")
_EXAMPLE = "registry.example.org/team"


class Refused(Exception):
    """The reason why the build stops, shown to the user as it is."""


@dataclass(frozen=True)
class Revision:
    """The source of the images: git's commit, with "-dirty" appended if files differ, and its date (Unix)."""

    name: str
    epoch: int


def engine(command: str) -> str:
    """The engine's command, if it answers. Raises Refused with the thing to install, start or allow."""
    if shutil.which(command) is None:
        raise Refused(
            f"{command} is not on the PATH: building images needs a container engine. Install Docker or Podman "
            "(use Podman with ENGINE=podman)"
        )
    answer = subprocess.run([command, "info"], capture_output=True, text=True)
    if answer.returncode:
        said = (answer.stderr.strip() or answer.stdout.strip() or "no answer").splitlines()[-1]
        raise Refused(f"{command} does not answer: {said} (is the engine running, and may this user use it?)")
    return command


def revision() -> Revision:
    """git's revision, or "unknown" and 1980 outside of a git checkout."""
    asked = subprocess.run(["git", "log", "-1", "--format=%H %ct"], cwd=PROJECT, capture_output=True, text=True)
    if asked.returncode:
        return Revision("unknown", 315532800)
    name, epoch = asked.stdout.split()
    changed = subprocess.run(
        ["git", "status", "--porcelain", "--", *_CONTEXT], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    return Revision(f"{name}-dirty" if changed.stdout else name, int(epoch))


def labels(image: str, stages: Sequence[str], project: Mapping[str, str], built: Revision, base: str) -> dict[str, str]:
    """The OCI annotations of an image. project: the table of that name in pyproject.toml."""
    return {
        "org.opencontainers.image.title": f"{PREFIX}{image}",
        "org.opencontainers.image.description": f"{project['description']}: {', '.join(stages)}",
        "org.opencontainers.image.version": project["version"],
        "org.opencontainers.image.revision": built.name,
        "org.opencontainers.image.created": datetime.fromtimestamp(built.epoch, UTC).isoformat(),
        "org.opencontainers.image.licenses": project["license"],
        "org.opencontainers.image.base.name": base,
    }


def build(command: str, image: str, tag: str, options: Sequence[str], epoch: int) -> None:
    """Builds one image. Raises Refused if that fails."""
    call = [command, "build", "--file", "docker/Dockerfile", "--build-arg", f"IMAGE={image}", "--tag", tag, *options]
    # BuildKit uses it as the image's own date; the older builder cannot set that.
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(epoch)}
    if subprocess.run([*call, "."], cwd=PROJECT, env=environment).returncode:
        raise Refused(f"{tag} could not be built: see the output above")


def measured(command: str, image: str, tag: str) -> str:
    """One line on an image's size. Raises Refused if it is over its limit."""
    answer = subprocess.run([command, "image", "inspect", tag], capture_output=True, text=True, check=True)
    size = json.loads(answer.stdout)[0]["Size"]
    line = f"{tag}: {size / 1e9:.2f} GB unpacked, of {LARGEST[image] / 1e9:g} allowed"
    if size > LARGEST[image]:
        raise Refused(f"{line}: `{command} history {tag}` shows which layer grew")
    return line


def push(command: str, tag: str, prefix: str) -> str:
    """Pushes an image as <prefix>/<tag>; returns that name. Raises Refused if that fails."""
    target = f"{prefix.rstrip('/')}/{tag}"
    for step in ([command, "tag", tag, target], [command, "push", target]):
        if subprocess.run(step).returncode:
            raise Refused(f"{target} could not be pushed: is {command} logged in there (`{command} login`)?")
    return target


def main() -> int:
    """Builds all images or the named ones; see --help. Exit status 1 with one line if that fails."""
    known = environments()
    otherwise = f"by default all but {' '.join(VARIANTS)}"
    parser = argparse.ArgumentParser(description="Build the container images that the specifications name.")
    parser.add_argument("--only", metavar="NAMES", default="", help=f"some of: {' '.join(known)}; {otherwise}")
    parser.add_argument("--push", metavar="PREFIX", default="", help=f"push them below this prefix, such as {_EXAMPLE}")
    parser.add_argument("--engine", default="docker", help="the engine's command (default: docker)")
    parser.add_argument("--base", default=BASE, help=f"the base image (default: {BASE}); add a digest to pin it fully")
    parser.add_argument("--flags", default="", help="further options for the engine's build, such as '--no-cache'")
    given = parser.parse_args()
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    try:
        wanted = given.only.split() or [name for name in known if name not in VARIANTS]
        for name in wanted:
            if name not in known:
                raise Refused(f"{name!r} is not an image; the images are {', '.join(known)}")
        command, built = engine(given.engine), revision()
        for name in wanted:
            tag = f"{PREFIX}{name}:{project['version']}"
            noted = labels(name, known[name], project, built, given.base)
            options = ["--platform", "linux/amd64", "--build-arg", f"BASE={given.base}", *given.flags.split()]
            options += [f"--label={key}={value}" for key, value in noted.items()]
            build(command, name, tag, options, built.epoch)
            print(measured(command, name, tag), flush=True)
            if given.push:
                print(f"pushed {push(command, tag, given.push)}", flush=True)
    except Refused as reason:
        print(f"images: {reason}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("images: interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
