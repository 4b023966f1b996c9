"""The words for datums on the terminal."""

import pytest

from pipelines.client.jobs.workers import BusyWorker
from pipelines.commands.kit.display import at_work


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        (("/", "/library/05/"), "/, /library/05/"),
        (("/backbone.keras", "/backbone.json", "/library/05/"), "/backbone.*, /library/05/"),
        (("/a.b/one", "/c.d/two"), "/a.b/one, /c.d/two"),
        (("/2/vectors/", "/2/hashes.npy", "/f/index.json", "/f/vectors/"), "/2/, /f/"),
        (("/photo.jpg",), "/photo.jpg"),
    ],
)
def test_files_that_differ_in_their_endings_alone_are_one(paths: tuple[str, ...], said: str) -> None:
    assert at_work(BusyWorker(paths, 3.2)) == f"{said} for 3 s"
