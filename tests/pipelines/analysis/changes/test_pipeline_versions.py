"""The versions of pipelines by newer servers, and beside other people's."""

from collections.abc import Iterator
from typing import Any

import pytest

from pipelines.analysis.changes.pipeline_versions import PipelineVersions, differences
from pipelines.client.server.connection import Connection
from tests.pipelines.stand_ins import create_foreign, deploy_specs, shell_spec

pytestmark = pytest.mark.late_alone


def _deploy(connection: Connection, *values: str) -> None:
    for value in values:
        spec = shell_spec("p", "images")
        deploy_specs(connection, {**spec, "transform": spec["transform"] | {"env": {"K": value}}})


def test_a_version_began_with_its_own_commit_where_the_server_shows_that_of_the_first(
    as_user: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Pachyderm does from 2.11 on."""
    _deploy(as_user, "1", "2", "3")
    before = [(each.number, each.started) for each in PipelineVersions(as_user).newest_first()]
    ask = as_user.pps.ListPipeline

    def newer(request: Any) -> Iterator[Any]:
        found = list(ask(request))
        for info in found:
            info.details.created_at.CopyFrom(found[-1].details.created_at)
        yield from found

    monkeypatch.setattr(as_user.pps, "ListPipeline", newer)
    after = [(each.number, each.started) for each in PipelineVersions(as_user).newest_first()]
    assert [number for number, _ in after] == [number for number, _ in before] == [3, 2, 1]
    for (_, one), (_, other) in zip(before, after, strict=True):
        assert abs((one - other).total_seconds()) < 1


def test_other_peoples_pipelines_are_left_out(as_user: Connection) -> None:
    _deploy(as_user, "1")
    create_foreign(as_user, shell_spec("theirs", "images"))
    assert PipelineVersions(as_user).pipelines == ["p"]


def test_an_empty_field_is_no_setting(as_user: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    _deploy(as_user, "1", "2")
    ask = as_user.pps.ListPipeline

    def newer(request: Any) -> Iterator[Any]:
        for info in ask(request):
            if info.version == 2:
                info.details.resource_limits.SetInParent()
            yield info

    monkeypatch.setattr(as_user.pps, "ListPipeline", newer)
    new, old = PipelineVersions(as_user).newest_first()
    assert [each.name for each in differences([(old, new)])] == ["K"]
