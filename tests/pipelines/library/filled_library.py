"""A library without pipelines, and a directory to fill it from."""

import itertools
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import python_pachyderm

from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from pipelines.library import ingest
from pipelines.library.picture_sources import PictureSource
from tests.pipelines.library import picture_contents


class Place:
    """A library and a directory to fill it from."""

    def __init__(self, connection: Connection, directory: Path) -> None:
        self.connection = connection
        self.directory = directory
        self._numbers = itertools.count()
        self.repo = Repository(connection, "images")

    def beside(self, name: str) -> "Place":
        """The same library, filled from another directory."""
        directory = self.directory.parent / name
        directory.mkdir()
        return Place(self.connection, directory)

    def files(self, contents: dict[str, bytes]) -> list[PictureSource]:
        """Files by true name, as if they had been named on the command line."""
        sources = []
        for name, content in contents.items():
            path = self.directory / str(next(self._numbers))
            path.write_bytes(content)
            sources.append(PictureSource(name, path, len(content)))
        return sources

    def add(self, contents: dict[str, bytes]) -> ingest.IngestResult:
        return ingest.add(self.connection, self.files(contents))

    def remove(self, *names: str) -> ingest.IngestResult:
        return ingest.remove(self.connection, names)

    def own(self) -> Connection:
        """A connection of its own to the same library, as another process has."""
        client = python_pachyderm.Client.new_from_pachd_address(self.connection.address)
        return replace(self.connection, client=client)

    def entries(self) -> set[str]:
        return {path.strip("/") for path in self.repo.list()}

    def library(self) -> dict[str, bytes]:
        return picture_contents.library(self.connection)

    def commits(self) -> int:
        """The number of commits."""
        return len(list(self.connection.client.list_commit("images", project_name=self.connection.project)))

    def blocks(self) -> dict[str, set[str]]:
        return picture_contents.blocks(self.connection)

    def masked(self) -> dict[str, set[str]]:
        return picture_contents.masked(self.connection)


def many(numbers: Iterable[int], version: int = 0) -> dict[str, bytes]:
    return {f"photos/{number:04}.jpg": f"{number} {version}".encode() for number in numbers}
