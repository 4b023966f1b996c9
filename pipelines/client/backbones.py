"""The backbone that the repo `models` holds, by its description."""

from pipelines.client.repository import Repository
from pipelines.client.server.connection import Connection
from stages.backbone.backbone_spec import SPEC_FILE, BackboneSpec, parse_spec
from stages.datum.contract import StageError

REPO = "models"


def current_backbone(models: Repository) -> BackboneSpec | None:
    """The backbone that the repo's master describes; None if it is missing or unreadable."""
    path = f"/{SPEC_FILE}"
    return parse_or_none(models.read(path) if models.exists(path) else None)


def describe_commit(connection: Connection, commit: str) -> str:
    """The backbone of a commit of `models`, for people, with the start of its hash; "" for none."""
    spec = current_backbone(Repository(connection, REPO, commit)) if commit else None
    return "" if spec is None else f"{spec.described} {spec.sha256[:8]}"


def parse_or_none(description: bytes | None) -> BackboneSpec | None:
    """The content of backbone.json; None if it is missing, or unreadable and to be replaced."""
    try:
        return None if description is None else parse_spec(description)
    except StageError:
        return None
