"""A client that changes the inputs of three pipelines, the third from the second from the first, and knows what their
outputs have to be."""

import random
import sys
from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from itertools import pairwise
from pathlib import Path

from python_pachyderm import Client
from python_pachyderm.proto.v2.pps import pps_pb2

from tests.endurance.mirrors import Mirror
from tests.endurance.writers import Digests, Timings, differences, digest, digests

_FILES = 12
_KEPT = 5
"""Files, and commit sets: older ones are squashed."""

_PFS = 'PFS="${LOCALPACHD_PFS:-/pfs}"'
_UPPER = (_PFS, 'for each in "$PFS"/in/*; do tr a-z A-Z < "$each" > "$PFS/out/${each##*/}"; done')
_SUM = (_PFS, 'cat "$PFS"/in/* | sha256sum | cut -d " " -f 1 > "$PFS/out/sum"')
# A program that asks for its datums and copies them.
_COPYING = Path(__file__).parents[2] / "benchmarks" / "server" / "trivial.py"


class TextClient:
    """Changes texts, in the repo `<name>`; `<name>-upper` has a datum for each, `<name>-copy` a process for all datums,
    `<name>-sum` one datum."""

    def __init__(self, name: str, seed: int, timings: Timings) -> None:
        self._name = name
        self._chance = random.Random(seed)
        self._timings = timings
        self._mirror: Mirror[Mapping[str, bytes]] = Mirror({})

    @property
    def acknowledged(self) -> int:
        return self._mirror.acknowledged

    def deploy(self, client: Client) -> None:
        """Makes what is missing."""
        repos = {each.repo.name for each in client.list_repo()}
        if self._name not in repos:
            client.create_repo(self._name)
        there = {each.pipeline.name for each in client.list_pipeline()}
        stages = (
            ("upper", self._name, "/*", pps_pb2.Transform(cmd=["sh", "-e"], stdin=_UPPER)),
            ("copy", f"{self._name}-upper", "/*", pps_pb2.Transform(
                cmd=[sys.executable, str(_COPYING)], datum_batching=True)),
            ("sum", f"{self._name}-copy", "/", pps_pb2.Transform(cmd=["sh", "-e"], stdin=_SUM)),
        )  # fmt: skip
        for kind, source, glob, transform in stages:
            if f"{self._name}-{kind}" not in there:
                given = pps_pb2.Input(pfs=pps_pb2.PFSInput(name="in", repo=source, glob=glob))
                client.create_pipeline(f"{self._name}-{kind}", transform=transform, input=given)

    def step(self, client: Client) -> None:
        self.deploy(client)
        changed = {f"/{self._chance.randrange(_FILES)}.txt": self._text() for _ in range(self._chance.randrange(1, 4))}
        tree = self._mirror.state
        gone = [path for path in tree if path not in changed and self._chance.random() < 0.1]
        after = {path: data for path, data in {**tree, **changed}.items() if path not in gone}

        def put() -> None:
            with client.modify_file_client((self._name, "master")) as writer:
                for path in gone:
                    writer.delete_file(path)
                for path, data in changed.items():
                    writer.put_file_from_bytes(path, data)

        with self._mirror.becoming(after):
            self._timings.timed("put of texts", put)
        self._squash(client)
        if self._chance.random() < 0.2:
            self._timings.timed("put of texts to their sum, after earlier ones", lambda: self._wait(client))

    def problems(self, client: Client) -> list[str]:
        self.deploy(client)
        found = {path: client.get_file((self._name, "master"), path).read() for path in digests(client, self._name)}
        before = _hashed(self._mirror.state)
        wrong = []
        if not self._mirror.settle(found):
            wrong += differences({self._name: before}, {self._name: _hashed(found)})
        if found:
            self._wait(client)
            wrong += differences(self._expected(), {name: digests(client, name) for name in self._expected()})
        return wrong

    def _expected(self) -> dict[str, Digests]:
        """The outputs that belong to the texts."""
        upper = {path: data.upper() for path, data in self._mirror.state.items()}
        text = b"".join(upper[path] for path in sorted(upper))
        hashes = {"/sum": digest(f"{sha256(text).hexdigest()}\n".encode())}
        copies = _hashed(upper)
        return {f"{self._name}-upper": copies, f"{self._name}-copy": copies, f"{self._name}-sum": hashes}

    def _wait(self, client: Client) -> None:
        (head,) = client.inspect_commit((self._name, "master"))
        client.wait_commit(head.commit.id)

    def _squash(self, client: Client) -> None:
        commits = list(client.list_commit(self._name))
        for child, old in reversed(list(pairwise(commits[_KEPT - 1 :]))):
            client.wait_commit(child.commit.id)  # a commit can be squashed when its children are finished
            self._timings.timed("squash", partial(client.squash_commit, old.commit.id))

    def _text(self) -> bytes:
        return "".join(self._chance.choices("abcdefgh \n", k=self._chance.randrange(2000))).encode()


def _hashed(tree: Mapping[str, bytes]) -> Digests:
    return {path: digest(data) for path, data in tree.items()}
