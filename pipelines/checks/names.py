"""Names of pipelines, projects and inputs: what Pachyderm takes."""

import re
from collections.abc import Iterator

from pipelines.specifications.drafts import Draft
from pipelines.specifications.findings import Flaw, Level

PIPELINE_LIMIT = 51
PROJECT_LIMIT = 51
KUBERNETES_LIMIT = 63
"""Of a label, which the name of a pipeline's replication controller has to be."""

_NAME = re.compile(r"[a-zA-Z0-9_-]+")


def check(draft: Draft) -> Iterator[Flaw]:
    """Names that are missing, too long, or hold what a name may not."""
    project = str(draft.get("pipeline", "project", "name", default="") or "default")
    if not draft.name:
        yield Flaw(Level.ERROR, "name", ("pipeline",), "the pipeline has no name", 'add "pipeline": {"name": "…"}')
    else:
        yield from _check_name("pipeline", draft.name, PIPELINE_LIMIT, ("pipeline", "name"))
    if project != "default":
        yield from _check_name("project", project, PROJECT_LIMIT, ("pipeline", "project", "name"))
    kubernetes = f"{project}-{draft.name}-v99".replace("_", "-").lower()
    excess = len(kubernetes) - KUBERNETES_LIMIT
    if excess > 0 and len(draft.name) <= PIPELINE_LIMIT and len(project) <= PROJECT_LIMIT:
        why = f"with its project it makes the Kubernetes name {kubernetes}, which is {excess} characters too long"
        yield Flaw(Level.ERROR, "name", ("pipeline", "name"), why, "shorten it, or the name of the project")


def _check_name(what: str, name: str, limit: int, at: tuple[str, ...]) -> Iterator[Flaw]:
    if not _NAME.fullmatch(name):
        why = f'"{name}" is no name of a {what}'
        yield Flaw(Level.ERROR, "name", at, why, "use letters, digits, - and _ only")
    elif not name[0].isalnum():
        yield Flaw(Level.ERROR, "name", at, f'"{name}" begins with {name[0]}', "begin with a letter or a digit")
    if len(name) > limit:
        why = f"is {len(name) - limit} characters longer than the {limit} that the name of a {what} may have"
        yield Flaw(Level.ERROR, "name", at, why, "shorten it")
