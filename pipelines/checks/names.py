"""Names of pipelines and projects that Pachyderm refuses."""

from collections.abc import Iterator

from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.findings import Flaw
from speclang import names
from speclang.names import NameFault, NameRule


def check(draft: SpecDraft) -> Iterator[Flaw]:
    """Names that are missing, too long, or have characters that are not allowed."""
    project = str(draft.get("pipeline", "project", "name", default="") or names.DEFAULT_PROJECT)
    faults = list(names.pipeline_faults(draft.name, project)) if draft.name else []
    too_long = any(fault.rule is NameRule.LENGTH for fault in (*faults, *names.project_faults(project)))
    if not draft.name:
        yield Flaw.error("name", ("pipeline",), "the pipeline has no name", 'add "pipeline": {"name": "…"}')
    for fault in faults:
        if fault.rule is not NameRule.KUBERNETES:
            yield _flaw("pipeline", draft.name, fault, ("pipeline", "name"))
        elif not too_long:
            long = names.kubernetes_name(draft.name, project)
            why = f"with its project it makes the Kubernetes name {long}, which is {fault.excess} characters too long"
            yield Flaw.error("name", ("pipeline", "name"), why, "shorten it, or the name of the project")
    for fault in names.project_faults(project):
        yield _flaw("project", project, fault, ("pipeline", "project", "name"))


def _flaw(noun: str, name: str, fault: NameFault, at: tuple[str, ...]) -> Flaw:
    match fault.rule:
        case NameRule.CHARACTERS:
            why, fix = f'"{name}" is not a valid name of a {noun}', "use letters, digits, - and _ only"
        case NameRule.BEGINNING:
            why, fix = f'"{name}" begins with {name[0]}', "begin with a letter or a digit"
        case _:
            most = names.PIPELINE_LIMIT if noun == "pipeline" else names.PROJECT_LIMIT
            why = f"is {fault.excess} characters longer than the {most} that the name of a {noun} may have"
            fix = "shorten it"
    return Flaw.error("name", at, why, fix)
