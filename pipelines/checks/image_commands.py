"""The image of a pipeline, whether that image holds the module of its command, and the user that runs it.

What is said of users follows worker_rc.go and the worker's driver.go of Pachyderm 2.7.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache

from pipelines.specifications import json_documents, optional_specs
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.findings import Flaw, FlawLevel, did_you_mean
from pipelines.specifications.image_reference import DEFAULT_TAG, ImageReference
from pipelines.specifications.pipeline_specs import SHIPPED_SPECS

OURS = "lookalike-"
"""The beginning of the names of the images that are built from this source."""

DEFAULT = "ubuntu:20.04"
"""The image that Pachyderm uses if a specification does not name one."""

_SOURCE = SHIPPED_SPECS.parent
_PYTHON = re.compile(r"(?:.*/)?python[0-9.]*")
_PLACEHOLDER = re.compile(r"(?:^|[./])example\.(?:com|org|net)(?::|/|$)")


def check(draft: SpecDraft) -> Iterator[Flaw]:
    """Images with invalid names or without a version, commands that their image does not hold, and users."""
    if draft.get("transform") is None:
        yield Flaw.error("command", (), "names no command to run", 'add "transform": {"image": …, "cmd": […]}')
        return
    command = [str(word) for word in draft.get("transform", "cmd", default=())]
    if not command and draft.get("transform", "stdin"):
        why = "is the input of a command, but there is no command"
        yield Flaw.error("command", ("transform", "stdin"), why, 'add "cmd": ["sh"]')
    yield from _check_image(draft)
    image = ImageReference.parse(draft.get("transform", "image", default=""))
    if image is not None and image.name.startswith(OURS):
        yield from _check_module(command, image)
    yield from _check_user(draft)


def _check_image(draft: SpecDraft) -> Iterator[Flaw]:
    at = ("transform", "image")
    text = draft.get(*at, default="")
    image = ImageReference.parse(text)
    if not text:
        python = any(_PYTHON.fullmatch(str(word)) for word in draft.get("transform", "cmd", default=())[:1])
        why = f"is missing, so Pachyderm uses {DEFAULT}" + (", which does not have Python" if python else "")
        yield Flaw(FlawLevel.WARNING if python else FlawLevel.NOTE, "image", at, why, "name an image and its version")
    elif image is None:
        why = f'"{text}" is not a valid name of an image'
        yield Flaw.error("image", at, why, "write [REGISTRY/]NAME:TAG, with the name in lower case")
    elif not image.digest and (image.tag or DEFAULT_TAG) == DEFAULT_TAG:
        why = "does not name a version: nodes keep the one that they have, and a new one does not recompute anything"
        yield Flaw.warning("image", at, why, f"write {image.moved('', '0.1.0')}, or a digest")
    if image is not None and _PLACEHOLDER.search(image.registry):
        why = f"{image.registry} is a placeholder for your own registry"
        yield Flaw.error("image", at, why, "name your registry")


def _check_module(command: list[str], image: ImageReference) -> Iterator[Flaw]:
    if len(command) < 3 or not _PYTHON.fullmatch(command[0]) or command[1] != "-m":
        return
    module, at = command[2], ("transform", "cmd", 2)
    if not _is_there(module):
        modules = {each for held in _held().values() for each in held}
        why = f"the source of {image.name} has no module {module}"
        yield Flaw.error("command", at, why, did_you_mean(module, modules, "correct its name"))
    elif image.name in _held() and module not in _held()[image.name]:
        homes = [name for name, held in _held().items() if module in held]
        why = f"{image.name} is built without {module}: it holds {', '.join(sorted(_held()[image.name]))}"
        fix = f"use {homes[0]}" if homes else f"build it from specifications that run {module} in it"
        yield Flaw.error("command", at, why, fix)


def _is_there(module: str) -> bool:
    path = _SOURCE.joinpath(*module.split("."))
    return path.with_suffix(".py").is_file() or (path / "__main__.py").is_file()


@cache
def _held() -> Mapping[str, frozenset[str]]:
    """The modules that each image is built for: those that lookalike's own specifications run in it."""
    held: dict[str, set[str]] = {}
    for path in optional_specs.files(SHIPPED_SPECS):
        transform = json_documents.read(path).value.get("transform", {})
        image = ImageReference.parse(transform.get("image", ""))
        if image is not None:
            held.setdefault(image.name, set()).update(transform.get("cmd", [])[2:3])
    return {name: frozenset(modules) for name, modules in held.items()}


_OUR_USERS = ("lookalike", "1000")
"""The user of our images, by name and by number."""


def _check_user(draft: SpecDraft) -> Iterator[Flaw]:
    """Users that a container cannot start as, or that its worker can only become as root."""
    text = str(draft.get("transform", "user", default=""))
    image = ImageReference.parse(draft.get("transform", "image", default=""))
    ours = image is not None and image.name.startswith(OURS)
    name = f'"{_OUR_USERS[0]}"' if ours else "its name in the image's /etc/passwd"
    fix = f"write {name}, or remove it"
    user = text.partition(":")[0]
    if text.isdecimal() and not int(text):
        why = "where pachd runs workers without root, Kubernetes does not start a container as user 0"
        yield _flaw(why, "write root for an image that runs as root, or remove it")
    elif text.isdecimal():
        why = (
            "as a number it makes the root file system read-only where pachd runs workers without root, and with local "
            "storage /tmp too: the worker cannot write there, and no job ends"
        )
        yield _flaw(why, fix)
    elif ours and user and user not in _OUR_USERS:
        why = f"the worker runs as {_OUR_USERS[0]} where pachd runs workers without root, and cannot become {user}"
        yield _flaw(why, fix)


def _flaw(why: str, fix: str) -> Flaw:
    return Flaw.warning("user", ("transform", "user"), why, fix)
