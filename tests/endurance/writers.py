"""Clients that write and remember what was acknowledged: files in repos, and secrets.

Each owns what it writes, so that nobody else changes it. All calls raise grpc.RpcError when the server is gone.
"""

import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from hashlib import blake2b
from typing import Protocol, TypeVar

from python_pachyderm import Client
from python_pachyderm.proto.v2.pfs import pfs_pb2

from tests.endurance.mirrors import Mirror

Result = TypeVar("Result")
Digests = Mapping[str, str]
"""The hash of each file of a tree, by path."""

_REPOS = 3
_FILES = 60
_SEVERAL = 20
_LARGE = 1 << 20
_SECRETS = 20


class Timings:
    """The seconds that calls have taken, by kind."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)

    def timed(self, kind: str, call: Callable[[], Result]) -> Result:
        """Makes a call, and notes its time if it is answered."""
        begun = time.perf_counter()
        found = call()
        self.seconds[kind].append(time.perf_counter() - begun)
        return found


class Writer(Protocol):
    """A client of one kind; `acknowledged` counts the changes that the server has acknowledged."""

    @property
    def acknowledged(self) -> int: ...

    def step(self, client: Client) -> None:
        """Makes one change, or reads something back."""
        ...

    def problems(self, client: Client) -> list[str]:
        """What is not as it was acknowledged. No step is under way."""
        ...


class Repos:
    """Files of all sizes in a few repos, which are deleted when they are full."""

    def __init__(self, name: str, seed: int, timings: Timings) -> None:
        self._name = name
        self._chance = random.Random(seed)
        self._timings = timings
        self._made = 0
        self._wrong: list[str] = []
        self._mirror: Mirror[Mapping[str, Digests]] = Mirror({})

    @property
    def acknowledged(self) -> int:
        return self._mirror.acknowledged

    def step(self, client: Client) -> None:
        state = self._mirror.state
        full = [name for name, tree in state.items() if len(tree) >= _FILES]
        if full:
            rest = {name: tree for name, tree in state.items() if name != full[0]}
            with self._mirror.becoming(rest):
                self._timings.timed("delete_repo", lambda: client.delete_repo(full[0]))
        elif len(state) < _REPOS:
            self._made += 1
            name = f"{self._name}-{self._made}"
            with self._mirror.becoming({**state, name: {}}):
                self._timings.timed("create_repo", lambda: client.create_repo(name))
        else:
            kinds = (self._put, self._put_several, self._remove, self._read)
            self._chance.choices(kinds, (60, 10, 10, 20))[0](client, self._chance.choice(sorted(state)))

    def problems(self, client: Client) -> list[str]:
        names = [each.repo.name for each in client.list_repo() if each.repo.name.startswith(f"{self._name}-")]
        before, found = self._mirror.state, {name: digests(client, name) for name in names}
        wrong, self._wrong = self._wrong, []
        if not self._mirror.settle(found):
            wrong += differences(before, found)
        return wrong

    def _put(self, client: Client, repo: str) -> None:
        size = self._chance.choice((0, 500, 500, 500, 70_000, _LARGE if self._chance.random() < 0.2 else 500))
        path, data = self._path(), self._chance.randbytes(size)
        with self._changing(repo, {path: digest(data)}):
            self._timings.timed("put", lambda: client.put_file_bytes((repo, "master"), path, data))

    def _put_several(self, client: Client, repo: str) -> None:
        data = {self._path(): self._chance.randbytes(900) for _ in range(_SEVERAL)}

        def put() -> None:
            with client.modify_file_client((repo, "master")) as writer:
                for path, content in data.items():
                    writer.put_file_from_bytes(path, content)

        with self._changing(repo, {path: digest(content) for path, content in data.items()}):
            self._timings.timed(f"put of {_SEVERAL} files", put)

    def _remove(self, client: Client, repo: str) -> None:
        tree = self._mirror.state[repo]
        if tree:
            path = self._chance.choice(sorted(tree))
            with self._changing(repo, {}, {path}):
                self._timings.timed("delete_file", lambda: client.delete_file((repo, "master"), path))

    def _read(self, client: Client, repo: str) -> None:
        tree = self._mirror.state[repo]
        if tree:
            path = self._chance.choice(sorted(tree))
            data = self._timings.timed("get", lambda: client.get_file((repo, "master"), path).read())
            if digest(data) != tree[path]:
                client.inspect_repo(repo)  # python-pachyderm returns what it has when the server is gone: this raises
                self._wrong.append(f"{repo}:{path} was read with other content")

    def _changing(self, repo: str, put: Digests, removed: Iterable[str] = ()) -> AbstractContextManager[None]:
        state = self._mirror.state
        tree = {path: each for path, each in state[repo].items() if path not in removed}
        return self._mirror.becoming({**state, repo: {**tree, **put}})

    def _path(self) -> str:
        return f"/{self._chance.choice('abc')}/{self._chance.randrange(_FILES * 2)}"


class Secrets:
    """Secrets, made and deleted."""

    def __init__(self, name: str, seed: int, timings: Timings) -> None:
        self._name = name
        self._chance = random.Random(seed)
        self._timings = timings
        self._made = 0
        self._mirror: Mirror[frozenset[str]] = Mirror(frozenset())

    @property
    def acknowledged(self) -> int:
        return self._mirror.acknowledged

    def step(self, client: Client) -> None:
        state = self._mirror.state
        if len(state) >= _SECRETS or (state and self._chance.random() < 0.3):
            name = self._chance.choice(sorted(state))
            with self._mirror.becoming(state - {name}):
                self._timings.timed("delete_secret", lambda: client.delete_secret(name))
        else:
            self._made += 1
            name = f"{self._name}-{self._made}"
            with self._mirror.becoming(state | {name}):
                self._timings.timed("create_secret", lambda: client.create_secret(name, {"key": "value"}))

    def problems(self, client: Client) -> list[str]:
        names = (each.secret.name for each in client.list_secret())
        before, found = self._mirror.state, frozenset(each for each in names if each.startswith(f"{self._name}-"))
        if self._mirror.settle(found):
            return []
        return [f"secrets lost: {sorted(before - found)}, not deleted: {sorted(found - before)}"]


def digest(data: bytes) -> str:
    """The hash of a file's content."""
    return blake2b(data, digest_size=16).hexdigest()


def digests(client: Client, repo: str) -> dict[str, str]:
    """The hashes of all files at the head of a repo's master, by path; {} where it has no commit."""
    if not any(True for _ in client.list_branch(repo)):
        return {}
    found = (each.file for each in client.walk_file((repo, "master"), "/") if each.file_type == pfs_pb2.FILE)
    return {file.path: digest(client.get_file(file.commit, file.path).read()) for file in found}


def differences(before: Mapping[str, Digests], found: Mapping[str, Digests]) -> list[str]:
    """The trees that differ, in words."""
    lines = [f"repo {name} is {'gone' if name in before else 'back'}" for name in before.keys() ^ found.keys()]
    for name in before.keys() & found.keys():
        old, new = before[name], found[name]
        changed = sorted(path for path in old.keys() | new.keys() if old.get(path) != new.get(path))
        if changed:
            lines.append(f"repo {name}: {len(changed)} files differ, among them {changed[0]}")
    return lines
