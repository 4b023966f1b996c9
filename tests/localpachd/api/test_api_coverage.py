"""docs/api-coverage.md matches the code."""

from pathlib import Path

from localpachd.api.api_coverage import PARTLY, table
from localpachd.api.api_services import SERVICES

ROOT = Path(__file__).parents[3]


def test_the_document_matches_the_output_of_the_module() -> None:
    written = (ROOT / "docs" / "api-coverage.md").read_text()
    assert written == table(), "run: python -m localpachd.api.api_coverage > docs/api-coverage.md"


def test_every_note_is_about_a_served_call() -> None:
    calls = {
        f"{each.descriptor.full_name}/{method.name}": each for each in SERVICES for method in each.descriptor.methods
    }
    for name, note in PARTLY.items():
        assert f"| partly | {note} |" in table()
        assert name in calls


def test_no_servicer_defines_a_call_that_is_not_in_the_api() -> None:
    """Nothing would reach a misspelt call."""
    for service in SERVICES:
        if service.served_by is None:
            continue
        known = {method.name for method in service.descriptor.methods}
        public = {name for name in dir(service.served_by) if name[0].isupper()}
        assert public <= known
