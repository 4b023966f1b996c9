"""The user that runs a pipeline's commands, and the clusters on which the worker can become that user.

Follows worker_rc.go and the worker's driver.go of Pachyderm 2.7.
"""

from collections.abc import Iterator

from pipelines.checks.image_commands import OURS
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.findings import Flaw, FlawLevel
from pipelines.specifications.image_reference import ImageReference

_OUR_USERS = ("lookalike", "1000")
"""The user of our images, by name and by number."""


def check(draft: SpecDraft) -> Iterator[Flaw]:
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
    return Flaw(FlawLevel.WARNING, "user", ("transform", "user"), why, fix)
