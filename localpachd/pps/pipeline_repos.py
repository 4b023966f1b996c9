"""A pipeline's repos and branches: created, and connected to the branches that it reads. Keeps no pipelines."""

from localpachd.errors import AlreadyExists, PachError
from localpachd.pfs import branches, repos
from localpachd.pfs.pfs_entities import Branch, Repo
from localpachd.pfs.transaction import Transaction
from localpachd.pps.pps_entities import Pipeline
from localpachd.pps.specs import inputs, spec


def create(txn: Transaction, pipeline: Pipeline) -> None:
    """Creates the repos of a new pipeline's output and of its versions."""
    try:
        repos.create(txn, pipeline.repo, f"Output repo for pipeline {pipeline}.")
    except AlreadyExists:
        # Pachyderm's text and code: a name taken by a plain repo is not reported as ALREADY_EXISTS.
        raise PachError(
            f'pipeline "{pipeline.name}" cannot be created because a repo with the same name already exists'
        ) from None
    except PachError as error:
        raise type(error)(f"error creating output repo for {pipeline.name}: {error}") from error
    repos.create(txn, pipeline.spec_repo, f"Spec repo for pipeline {pipeline}.", update=True)


def prepare_inputs(txn: Transaction, pipeline: Pipeline, details: spec.PipelineSpec) -> None:
    """Creates the repos of ticks; every other input repo must exist."""
    for repo in cron_repos(details):
        if not repos.exists(txn.conn, repo):
            repos.create(txn, repo, f"Cron tick repo for pipeline {pipeline}.")
    for branch in inputs.branches(details.input):
        repos.inspect(txn.conn, branch.repo)


def cron_repos(details: spec.PipelineSpec) -> list[Repo]:
    """The repos of a pipeline's ticks."""
    leaves = inputs.leaves(details.input)
    return [Repo(leaf.project, leaf.repo) for leaf in leaves if isinstance(leaf, inputs.CronInput)]


def set_triggers(txn: Transaction, details: spec.PipelineSpec) -> None:
    """Sets the triggers of input branches; their heads stay until a trigger fires."""
    for leaf in inputs.leaves(details.input):
        if isinstance(leaf, inputs.PfsInput) and leaf.trigger is not None:
            branch = Branch(Repo(leaf.project, leaf.repo, leaf.repo_type), leaf.branch)
            branches.create(txn, branch, head=branches.inspect(txn.conn, branch).head, trigger=leaf.trigger)


def follow_inputs(txn: Transaction, pipeline: Pipeline, details: spec.PipelineSpec, stopped: bool) -> None:
    """Sets the provenance of the output and the meta branch to the inputs and the spec branch or, if stopped, to
    nothing. Only a transform has a meta branch."""
    upstream: tuple[Branch, ...] = () if stopped else (*inputs.branches(details.input), pipeline.spec_branch)
    branches.create(txn, Branch(pipeline.repo, details.output_branch), provenance=upstream)
    if details.kind is not spec.PipelineKind.TRANSFORM:
        return
    if not repos.exists(txn.conn, pipeline.meta_repo):
        repos.create(txn, pipeline.meta_repo, f"Meta repo for pipeline {pipeline.name}")
    branches.create(txn, Branch(pipeline.meta_repo, details.output_branch), provenance=upstream)
