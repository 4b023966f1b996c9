"""docs/api-coverage.md says what the code does."""

from pathlib import Path

from localpachd.api.coverage import PARTLY, table
from localpachd.api.services import SERVICES

ROOT = Path(__file__).parents[3]


def test_the_document_is_what_the_module_prints() -> None:
    written = (ROOT / "docs" / "api-coverage.md").read_text()
    assert written == table(), "run: python -m localpachd.api.coverage > docs/api-coverage.md"


def test_every_remark_is_about_a_call_that_is_served() -> None:
    calls = {
        f"{each.descriptor.full_name}/{method.name}": each for each in SERVICES for method in each.descriptor.methods
    }
    for name, note in PARTLY.items():
        assert f"| partly | {note} |" in table()
        assert name in calls


def test_no_servicer_defines_a_call_that_the_api_does_not_have() -> None:
    """A misspelt call would never be reached."""
    for service in SERVICES:
        if service.served_by is None:
            continue
        known = {method.name for method in service.descriptor.methods}
        public = {name for name in dir(service.served_by) if name[0].isupper()}
        assert public <= known
