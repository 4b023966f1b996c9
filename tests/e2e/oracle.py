"""The expected output of all pipelines, computed from scratch with the same stages on plain directories, datum by
datum.

Knows Pachyderm's rules for datums, and no server.
"""

import importlib
import itertools
import shutil
from collections import ChainMap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from stages.datum.contract import Datum, DatumInput
from tests.e2e.world import specs

Tree = dict[str, bytes]
Member = dict[str, DatumInput]


class Oracle:
    """Computes with the backbone in the directory `models`; `scratch` is a directory of its own."""

    def __init__(self, models: Path, scratch: Path) -> None:
        self._scratch = scratch
        self._models = models
        self._runs = itertools.count()
        self._specs = specs()
        self._stages = {spec.name: self._start(spec.document["transform"]) for spec in self._specs}

    @staticmethod
    def _start(transform: Mapping[str, Any]) -> Callable[[Datum], None]:
        process: Callable[[Datum], None] = importlib.import_module(transform["cmd"][-1]).start(transform["env"])
        return process

    def outputs(self, images: Tree, masks: Tree, queries: Tree) -> dict[str, Tree]:
        """The files of every pipeline by path."""
        run = self._scratch / str(next(self._runs))
        shutil.copytree(self._models, run / "models")
        for repo, tree in {"images": images, "masks": masks, "queries": queries}.items():
            write(run / repo, tree)
        for spec in self._specs:
            (run / spec.name).mkdir()
            for number, members in enumerate(self._datums(spec.document["input"], run)):
                out = run / "out" / spec.name / str(number)
                out.mkdir(parents=True)
                self._stages[spec.name](Datum(members, out))
                merge(out, run / spec.name)
        found = {spec.name: read(run / spec.name) for spec in self._specs}
        shutil.rmtree(run)
        return found

    def _datums(self, tree: Mapping[str, Any], run: Path) -> list[Member]:
        """The datums of a spec's input: of a glob each match, of a cross each pair, of a join those with one key,
        whole or with a member of an outer input, of a group one, which names its last file."""
        if "cross" in tree:
            members = (self._datums(each, run) for each in tree["cross"])
            return [dict(ChainMap(*combined)) for combined in itertools.product(*members)]
        if "join" in tree:
            # The capture is always the last component.
            by_key: dict[str, Member] = {}
            for each in tree["join"]:
                for member in self._datums(each, run):
                    (given,) = member.values()
                    by_key.setdefault(given.path.name, {}).update(member)
            outer = {each["pfs"]["name"] for each in tree["join"] if each["pfs"].get("outer_join")}
            whole = len(tree["join"])
            return [by_key[key] for key in sorted(by_key) if outer & by_key[key].keys() or len(by_key[key]) == whole]
        if "group" in tree:
            (member,) = tree["group"]  # whose files have one key
            return self._datums(member, run)[-1:]
        pfs = tree["pfs"]
        root = run / pfs["repo"]
        pattern = pfs["glob"].strip("/").replace("(", "").replace(")", "")
        paths = sorted(root.glob(pattern)) if pattern else [root]
        # The models never change and are loaded once; all other inputs are new commits in each run.
        commit = "models" if pfs["repo"] == "models" else run.name
        below = ["/".join(path.relative_to(root).parts) for path in paths]
        return [{pfs["name"]: DatumInput(pfs["name"], *each, commit)} for each in zip(paths, below, strict=True)]


def write(root: Path, tree: Tree) -> None:
    """Writes these files to a new directory."""
    root.mkdir()
    for path, data in tree.items():
        file = root / path.strip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)


def read(root: Path) -> Tree:
    """The files below a directory by path."""
    return {f"/{file.relative_to(root).as_posix()}": file.read_bytes() for file in root.rglob("*") if file.is_file()}


def merge(out: Path, into: Path) -> None:
    """Moves a datum's output to the others'; no two datums may write one path."""
    for file in sorted(out.rglob("*")):
        if file.is_file():
            target = into / file.relative_to(out)
            assert not target.exists(), f"two datums write {target}"
            target.parent.mkdir(parents=True, exist_ok=True)
            file.rename(target)
