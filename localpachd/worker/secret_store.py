"""Secrets: kept in files that only their owner may read, and given to the processes of tasks that ask for them.

Their values go nowhere else: not into the database, the log, or a datum's record. Knows no pipelines.
"""

import base64
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from localpachd import durable_files
from localpachd.errors import AlreadyExists, NotFound, PachError
from localpachd.worker.environment import EnvironmentProblem
from localpachd.worker.tasks import SecretUse

LARGEST = 1 << 20
"""Bytes of all values of one secret, as in Kubernetes."""
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character"
)
_KEY = re.compile(r"[-._a-zA-Z0-9]+")
_LONGEST = 253


@dataclass(frozen=True, slots=True)
class Secret:
    """A secret by name: Kubernetes's type, when it was made (ns since the epoch), and its values by key."""

    name: str
    type: str
    created: int
    data: Mapping[str, bytes] = field(repr=False)


class SecretStore:
    """The secrets of one server, each a file of its own in `directory`. Changes are durable when they return. The
    errors are Kubernetes's. Thread-safe."""

    def __init__(self, directory: Path) -> None:
        durable_files.make_directory(directory, 0o700)
        self._directory = directory
        self._changed: Callable[[], None] = lambda: None

    def observe(self, changed: Callable[[], None]) -> None:
        """Has `changed` called after each change."""
        self._changed = changed

    def create(self, secret: Secret) -> None:
        """Keeps a secret. Raises AlreadyExists for a name in use, PachError for what Kubernetes refuses."""
        _check(secret)
        values = {key: base64.b64encode(value).decode() for key, value in secret.data.items()}
        text = json.dumps({"type": secret.type, "created": secret.created, "data": values})
        try:
            durable_files.create(self._path(secret.name), text.encode())
        except FileExistsError:
            raise AlreadyExists(f'secrets "{secret.name}" already exists') from None
        self._changed()

    def get(self, name: str) -> Secret:
        """A secret by name. Raises NotFound."""
        try:
            kept = json.loads(self._path(name).read_text())
        except FileNotFoundError:
            raise NotFound(f'secrets "{name}" not found') from None
        data = {key: base64.b64decode(value) for key, value in kept["data"].items()}
        return Secret(name, kept["type"], kept["created"], data)

    def every(self) -> list[Secret]:
        found = []
        for path in sorted(self._directory.glob("[!.]*.json")):
            try:
                found.append(self.get(path.stem))
            except NotFound:  # deleted meanwhile
                continue
        return found

    def delete(self, name: str) -> None:
        """Deletes a secret. Raises NotFound."""
        try:
            self._path(name).unlink()
        except FileNotFoundError:
            raise NotFound(f'secrets "{name}" not found') from None
        durable_files.sync(self._directory)
        self._changed()

    def delete_all(self) -> None:
        for path in self._directory.glob("[!.]*.json"):
            path.unlink(missing_ok=True)
        durable_files.sync(self._directory)
        self._changed()

    def _path(self, name: str) -> Path:
        if not _NAME.fullmatch(name) or len(name) > _LONGEST:
            raise NotFound(f'secrets "{name}" not found')
        return self._directory / f"{name}.json"


def variables(uses: Sequence[SecretUse], secrets: SecretStore) -> dict[str, str]:
    """The environment variables that a task takes from secrets. Raises EnvironmentProblem."""
    found = {}
    for use in uses:
        if not use.env_var:
            continue
        data = _wanted(use, secrets).data
        if use.key not in data:
            raise EnvironmentProblem(f"transform.secrets: secret {use.name} no longer has the key {use.key}")
        if b"\0" in data[use.key]:
            raise EnvironmentProblem(
                f"transform.secrets: {use.key} of secret {use.name} holds a zero byte, which an environment variable "
                "cannot hold: mount it with mount_path"
            )
        found[use.env_var] = os.fsdecode(data[use.key])
    return found


def state(uses: Sequence[SecretUse], secrets: SecretStore) -> str:
    """A text that changes with each secret that a task takes: a hash of their values, to be kept in memory alone."""
    found = blake2b(digest_size=32)
    for use in uses:
        try:
            kept = secrets.get(use.name)
        except NotFound:
            found.update(repr((use.name, None)).encode())
        else:
            found.update(repr((kept.name, kept.created, sorted(kept.data.items()))).encode())
    return found.hexdigest()


def mounts(uses: Sequence[SecretUse], secrets: SecretStore, directory: Path) -> dict[str, Path]:
    """Writes the secrets that a task wants mounted below `directory`, a file for each key, for their owner only.
    Returns, by mount path, the directory to be mounted there. Raises EnvironmentProblem."""
    found = {}
    for number, use in enumerate(uses):
        if not use.mount_path:
            continue
        place = directory / str(number)
        place.mkdir(mode=0o700, parents=True)
        for key, value in _wanted(use, secrets).data.items():
            with os.fdopen(os.open(place / key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400), "wb") as file:
                file.write(value)
        found[use.mount_path] = place
    return found


def give_ownership(made: Iterable[Path], owner: tuple[int, int] | None) -> None:
    """Gives directories, and the files directly in them, to an owner (uid, gid) that is not the server's."""
    if owner is not None:
        for directory in made:
            for path in (directory, *directory.iterdir()):
                os.chown(path, *owner)


def _wanted(use: SecretUse, secrets: SecretStore) -> Secret:
    try:
        return secrets.get(use.name)
    except NotFound as error:
        raise EnvironmentProblem(f"transform.secrets: {error}: create it again") from error


def _check(secret: Secret) -> None:
    if not secret.name:
        raise PachError('Secret "" is invalid: metadata.name: Required value: name or generateName is required')
    if not _NAME.fullmatch(secret.name) or len(secret.name) > _LONGEST:
        raise PachError(
            f'Secret "{secret.name}" is invalid: metadata.name: Invalid value: "{secret.name}": {_NAME_RULE}'
        )
    for key in secret.data:
        if not _KEY.fullmatch(key) or key in (".", "..") or len(key) > _LONGEST:
            raise PachError(
                f'Secret "{secret.name}" is invalid: data[{key}]: Invalid value: "{key}": a valid config key must '
                "consist of alphanumeric characters, '-', '_' or '.'"
            )
    if sum(map(len, secret.data.values())) > LARGEST:
        raise PachError(f'Secret "{secret.name}" is invalid: data: Too long: must have at most {LARGEST} bytes')
