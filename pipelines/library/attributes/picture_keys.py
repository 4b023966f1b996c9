"""The files of the library's pictures, found by the names that people's tables have for them. Pure."""

from collections.abc import Iterable
from pathlib import PurePosixPath


class AmbiguousKeyError(Exception):
    """A name that several files end with: `paths`, of which there are at least two."""

    def __init__(self, paths: list[str]) -> None:
        super().__init__()
        self.paths = paths


class PictureKeys:
    """True paths of files, by themselves, by the ends of their paths and without their endings."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.paths = frozenset(paths)
        self._by_name: dict[str, list[str]] = {}
        self._by_stem: dict[str, list[str]] = {}
        for path in sorted(self.paths):
            self._by_name.setdefault(PurePosixPath(path).name, []).append(path)
            self._by_stem.setdefault(str(PurePosixPath(path).with_suffix("")), []).append(path)

    def find(self, key: str) -> str:
        """The file that a key names: its path, or the end of it from a folder on, if no other path ends so. "" if there
        is none. Raises AmbiguousKeyError."""
        for name in (key, key.replace("\\", "/")):
            name = name.removeprefix("./").lstrip("/")
            if name in self.paths:
                return name
            found = [path for path in self._by_name.get(PurePosixPath(name).name, ()) if path.endswith(f"/{name}")]
            if len(found) > 1:
                raise AmbiguousKeyError(found)
            if found:
                return found[0]
        return ""

    def beside(self, path: str) -> list[str]:
        """The files to which a sidecar belongs, by its path without its own ending: the one that has this path, or all
        that have it without their endings, as a RAW file and its JPEG do."""
        return [path] if path in self.paths else self._by_stem.get(path, [])
