"""The choices with which the service was deployed stay in later deployments, unless the specification makes them."""

from typing import Any

import pytest
from python_pachyderm.proto.v2.pps import pps_pb2

from pipelines.client.services import service_settings
from pipelines.client.services.service_roles import CLASSIFY, SEARCH
from pipelines.specifications import drafts, pipeline_specs
from pipelines.specifications.drafts import SpecDraft, SpecPatch

SPEC = pipeline_specs.SHIPPED_SPECS / "serve" / "serve.json"


@pytest.fixture
def running() -> Any:
    """A service behind a proxy, at a port of its own."""
    info = pps_pb2.PipelineInfo()
    info.details.service.external_port = 30123
    info.details.transform.env["PROXY"] = "pictures.example.org"
    return info


def facts(draft: SpecDraft) -> tuple[int, str, str]:
    env = draft.get("transform", "env")
    return int(draft.number("service", "external_port")), env["PROXY"], env["TLS_CERT_FILE"]


def test_the_choices_of_a_deployment() -> None:
    shipped = drafts.read(SPEC)
    assert facts(shipped) == (30680, "", "")
    assert facts(shipped.patched(service_settings.settings(SEARCH, 30123, "a.org", False))) == (30123, "a.org", "")
    own = shipped.patched(service_settings.settings(SEARCH, 30123, "", True))
    assert facts(own) == (30123, "", "/secrets/lookalike-serve/tls.crt")
    assert own.get("service", "internal_port") == 30680
    assert own.get("transform", "env")["LOOKALIKE_STAGE"] == shipped.get("transform", "env")["LOOKALIKE_STAGE"]


def test_they_stay_in_a_later_deployment(running: Any) -> None:
    assert facts(service_settings.with_running_values(drafts.read(SPEC), running)) == (
        30123,
        "pictures.example.org",
        "",
    )


def test_a_specification_of_ones_own_comes_first(running: Any) -> None:
    own = SpecPatch({"service": {"external_port": 30999}, "transform": {"env": {"PROXY": "b.org"}}})
    assert facts(service_settings.with_running_values(drafts.read(SPEC).patched(own), running)) == (30999, "b.org", "")


def test_each_service_has_its_own_secret_and_port(running: Any) -> None:
    shipped = drafts.read(pipeline_specs.SHIPPED_SPECS / "classify" / "classify-serve.json")
    assert facts(shipped) == (30681, "", "")
    own = shipped.patched(service_settings.settings(CLASSIFY, 30124, "", True))
    assert facts(own) == (30124, "", "/secrets/lookalike-classify-serve/tls.crt")
    assert facts(service_settings.with_running_values(shipped, running)) == (30123, "pictures.example.org", "")
