"""The user that runs commands in a container, and so owns the files in `/pfs`. Starts nothing."""

import os
from dataclasses import dataclass

from localpachd.worker.docker.container import Container
from localpachd.worker.environment import EnvironmentProblem


@dataclass(frozen=True, slots=True)
class ContainerUser:
    """A user in a container: `name` in Docker's form ("" for root), `owner` the (uid, gid) for files, None for ours."""

    name: str = ""
    owner: tuple[int, int] | None = None


def find_user(container: Container, wanted: str, own: str, rootless: bool) -> ContainerUser:
    """The account that `wanted` (`transform.user`: `user` or `user:group`, by name or number) names in a container, or
    else the image's `own` user.

    A server that is not root cannot give files away, and must be able to delete the files that commands leave. So
    commands then run as its own user, which is root inside the containers of a `rootless` engine. Raises
    EnvironmentProblem.
    """
    us = os.geteuid()
    if us == 0:
        owner = _resolve(container, wanted, known=True) if wanted else _resolve(container, own, known=False)
        return (
            ContainerUser(wanted or own, None if owner == (0, 0) else owner) if owner is not None else ContainerUser()
        )
    if wanted:
        owner = _resolve(container, wanted, known=True)
        if owner is not None and owner[0] != (0 if rootless else us):
            raise EnvironmentProblem(f"transform.user: localpachd must run as root to run commands as {wanted}")
    return ContainerUser("0:0" if rootless else f"{us}:{os.getegid()}")


def _resolve(container: Container, name: str, known: bool) -> tuple[int, int] | None:
    """The (uid, gid) of a name in the container; None for no name. With `known`, numbers must be in its passwd(5)."""
    if not name:
        return None
    account, _, group = name.partition(":")
    for entry in _entries(container, "/etc/passwd", 4):
        if account in (entry[0], entry[2]):
            gid = _group(container, group, name) if group else int(entry[3])
            return int(entry[2]), gid
    if known or not account.isdecimal():
        raise EnvironmentProblem(f"transform.user: {name} not found in the image")
    return int(account), _group(container, group, name) if group else 0


def _group(container: Container, group: str, name: str) -> int:
    if group.isdecimal():
        return int(group)
    for entry in _entries(container, "/etc/group", 3):
        if entry[0] == group:
            return int(entry[2])
    raise EnvironmentProblem(f"transform.user: the group of {name} not found in the image")


def _entries(container: Container, path: str, fields: int) -> list[list[str]]:
    try:
        text = container.read(path).decode(errors="replace")
    except FileNotFoundError:
        return []
    found = [line.split(":") for line in text.splitlines()]
    return [each for each in found if len(each) >= fields and all(part.isdecimal() for part in each[2:fields])]
