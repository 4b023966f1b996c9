"""Dumps, profiles and the program through pachyderm-sdk."""

import io
import tarfile
from datetime import timedelta

from pachyderm_sdk import Client
from pachyderm_sdk.api import debug


def test_a_dump_is_made_from_its_template(client: Client) -> None:
    request = client.debug.get_dump_v2_template().request
    assert request.input_repos
    assert "pachd" in [each.name for each in request.system.logs]
    first, *others = client.debug.dump(timeout=timedelta(seconds=60))
    assert first.progress.progress > 0
    content = b"".join(each.content.content for each in others)
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:gz") as archive:
        assert any(name.endswith("/version.txt") for name in archive.getnames())


def test_a_profile_and_the_program(client: Client) -> None:
    profile = debug.Profile(name="cpu", duration=timedelta(seconds=0.2))
    assert b"".join(each.value for each in client.debug.profile(profile=profile))
    assert b"".join(each.value for each in client.debug.binary())
