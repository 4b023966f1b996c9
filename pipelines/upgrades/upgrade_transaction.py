"""A plan carried out: all pipelines in one transaction, so that no job runs with some of them before and some after."""

from collections.abc import Mapping
from typing import Any

from pipelines.client.deployment import deployment
from pipelines.client.deployment.first_files import FIRST_FILES
from pipelines.client.deployment.input_changes import stopped_for_update
from pipelines.client.jobs.jobs import ProjectJobs
from pipelines.client.server.connection import Connection
from pipelines.client.transactions import transaction
from pipelines.errors import LookalikeError
from pipelines.specifications.pipeline_specs import SOURCES, repos_read
from pipelines.upgrades.upgrade_plan import UpgradePlan


def send(connection: Connection, plan: UpgradePlan, there: Mapping[str, Any]) -> str:
    """Carries out a plan for the deployed pipelines that it was made for, by name with details; returns the id of the
    commit set, "" if pipelines are deleted alone. Killed at any moment, either nothing or all of the transaction has
    happened; pipelines are deleted after it, and the same plan again does what is left.

    Raises LookalikeError if one of the pipelines was deployed since the plan was made, or if the server refuses one,
    and then changes nothing.
    """
    _check_unchanged(plan, there, ProjectJobs(connection).pipelines())
    requests = [step.request for step in plan.steps if step.is_sent]
    for repo in dict.fromkeys(repo for request in requests for repo in sorted(repos_read(request.input))):
        if repo in FIRST_FILES:
            deployment.ensure_filled(connection, repo)
        elif repo in SOURCES:
            deployment.make_repo(connection, repo)
    begun_id = ""
    if requests:
        inputs = {request.pipeline.name: request.input for request in requests}
        with stopped_for_update(connection, inputs, there), transaction(connection) as begun:
            for request in requests:
                with deployment.refusals_of(request.pipeline.name):
                    begun.add(connection.pps.CreatePipeline, request)
        begun_id = begun.id
    for step in reversed(plan.steps):
        if step.change == "deleted":
            connection.client.delete_pipeline(step.pipeline, project_name=connection.project)
    return begun_id


def _check_unchanged(plan: UpgradePlan, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    for step in plan.sent:
        before, after = (each.get(step.pipeline) for each in (then, now))
        if (before and before.spec_commit.id) != (after and after.spec_commit.id):
            raise LookalikeError(f"{step.pipeline} was deployed meanwhile, and nothing was changed: run this again")
