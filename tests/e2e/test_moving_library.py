"""A service under load while the library changes again and again: no answer mixes two commits."""

import hashlib
import http.client
import itertools
import json
import threading
import time
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from tests.e2e.test_serving import own_state, serving  # noqa: F401
from tests.e2e.world import MakeWorld, Paint, World
from tests.example_counts import examples

pytestmark = [pytest.mark.timeout(1800), pytest.mark.only_in_all]

REQUESTS, CLIENTS, COMMITS = examples(2_000), 8, 5
"""Requests at least, connections at once, and commits at least that have to answer."""

PATHS, CONTENTS = 10, 24
"""Names whose pictures all change with each commit, and the pictures that they take in turns."""

STILL = "still/first.png", "still/second.png"


class Told(NamedTuple):
    """What an answer tells: the commits of index and library, the path, the hash of the file ("" in a folder) and the
    id of each source, the question and the ranking."""

    commit: str
    library: str
    sources: frozenset[tuple[str, str, str]]
    question: str
    ranking: tuple[tuple[int, str, float], ...]


class Load:
    """Clients that ask all the time, each over a connection of its own."""

    def __init__(self, url: str, paint: Paint) -> None:
        parts = urlsplit(url)
        self._place = str(parts.hostname), parts.port
        still = self.ask(self.connected(), "/library?folder=still")["pictures"]
        one, other = ({"id": each["id"], "k": 1000} for each in still)
        several = {"k": 1000, "combine": "all", "pictures": [{"id": each["id"]} for each in still]}
        questions = [one, {"requests": [one, several, {**other, "metric": "cosine"}]}, several, one, other]
        self._asked: list[tuple[str, bytes | None]] = [("/search", json.dumps(each).encode()) for each in questions]
        self._asked += [("/search?k=1000", paint(900)), ("/library?folder=moving&limit=500", None)]
        self._lock, self.enough = threading.Lock(), threading.Event()
        self.told: Counter[Told] = Counter()
        self.requests = 0

    def connected(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(*self._place, timeout=120)

    def ask(self, connection: http.client.HTTPConnection, path: str, body: bytes | None = None) -> Any:
        kind = "image/png" if body is not None and body.startswith(b"\x89PNG") else "application/json"
        connection.request("GET" if body is None else "POST", path, body, {"Content-Type": kind})
        response = connection.getresponse()
        content = response.read()
        assert response.status == 200, content
        return json.loads(content)

    def client(self, first: int) -> None:
        connection = self.connected()
        for at in itertools.count(first):
            if self.enough.is_set():
                return
            answer = self.ask(connection, *self._asked[at % len(self._asked)])
            told = [_told(each) for each in answer.get("answers", [answer])]
            with self._lock:
                self.told.update(told)
                self.requests += 1

    @property
    def done(self) -> bool:
        return self.requests >= REQUESTS and len({each.commit for each in self.told.copy()}) >= COMMITS


def _told(answer: Mapping[str, Any]) -> Told:
    commits = answer["commits"]["index"], answer["commits"]["library"]
    if "folder" in answer:
        return Told(*commits, frozenset((each["path"], "", each["id"]) for each in answer["pictures"]), "", ())
    found = answer["neighbors"]
    sources = frozenset((source["path"], source["sha256"], each["id"]) for each in found for source in each["sources"])
    question = f"{[each['id'] for each in answer['pictures']]} {answer['metric']} {answer['combine']}"
    return Told(*commits, sources, question, tuple((each["rank"], each["id"], each["distance"]) for each in found))


def library(paint: Paint, number: int) -> dict[str, bytes]:
    """The files of a state of the library, of which the next has another picture under each moving name, and one more
    or one less."""
    moving = {f"moving/{at:02}.png": paint((at * 7 + number) % CONTENTS) for at in range(PATHS)}
    further = {"moving/further.png": paint(100 + number)} if number % 2 else {}
    return moving | further | {path: paint(500 + at) for at, path in enumerate(STILL)}


def changes(world: World, paint: Paint, load: Load) -> dict[str, dict[str, bytes]]:
    """Changes the library until the load is done; gives the files of each commit."""
    made: dict[str, dict[str, bytes]] = {}
    before = library(paint, 0)
    for number in itertools.count(1):
        after = library(paint, number)
        commit = world.add(after)
        made[commit] = before | after
        world.settle(commit)
        if gone := sorted(before.keys() - after.keys()):
            commit = world.remove(*gone)
            made[commit] = after
            world.settle(commit)
        before = after
        if load.done or load.enough.is_set():
            break
    return made


def check(told: Counter[Told], made: Mapping[str, Mapping[str, bytes]]) -> None:
    """Compares each answer with the library of the commit that it names."""
    hashes = {
        commit: {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
        for commit, files in made.items()
    }
    ids = {digest: id for each in told for _, digest, id in each.sources if digest}
    assert len(set(ids.values())) == len(ids)
    rankings: dict[tuple[str, str], Any] = {}
    for each in told:
        assert each.commit == each.library
        holds = hashes[each.library]
        whole = {(path, digest, ids[digest]) for path, digest in holds.items()}
        if each.question:
            assert each.sources == whole
            assert {id for _, id, _ in each.ranking} == {id for _, _, id in whole}
            assert rankings.setdefault((each.library, each.question), each.ranking) == each.ranking
        else:
            assert each.sources == {(path, "", id) for path, _, id in whole if path.startswith("moving/")}


def test_no_answer_mixes_two_commits(
    make_world: MakeWorld, backbones: dict[str, Path], paint: Paint, capsys: pytest.CaptureFixture[str]
) -> None:
    world = make_world("moving")
    world.deploy()
    world.push(backbones["first"])
    first = world.add(library(paint, 0))
    world.settle(first)
    with serving(world) as (_, url), ThreadPoolExecutor(CLIENTS) as clients:
        load, began = Load(url, paint), time.monotonic()
        working = [clients.submit(load.client, at) for at in range(CLIENTS)]
        for each in working:
            each.add_done_callback(lambda _: load.enough.set())  # also after a failure
        try:
            made = {first: library(paint, 0), **changes(world, paint, load)}
        finally:
            load.enough.set()
        for each in working:
            each.result()
        seconds = time.monotonic() - began
    check(load.told, made)
    commits = {each.commit for each in load.told}
    assert load.requests >= REQUESTS
    assert len(commits) >= COMMITS
    with capsys.disabled():
        answers = f"{load.requests:,} requests, {load.told.total():,} answers"
        print(f"\n{answers} of {len(commits)} of {len(made)} commits, {load.requests / seconds:.0f} requests/s")
