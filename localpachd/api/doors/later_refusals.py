"""The refusals of Pachyderm 2.12 that differ from those of 2.7, which all rooms raise: one table.

Each row names its place in the source of Pachyderm's branch 2.12.x (7ed6c9f7b9): `commit` is server_commit.go, `api`
api_server.go, and so on, in src/server/pfs/server, `pfsdb` is src/internal/pfsdb, `pps` src/server/pps/server. What
2.12's text has and 2.7's has not, such as the id of a branch's head or a whole specification, is left out here.
"""

import re
from typing import NamedTuple

import grpc

_UNKNOWN, _INTERNAL = grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL
_NOT_FOUND, _INVALID = grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT

_REPO = r"(?P<repo>(?P<project>[\w-]+)/(?P<name>[\w-]+))"
_TYPED = r"(?P<repo>[\w-]+/[\w.-]+)"
_ID = r"(?P<id>[0-9a-f]{32})"


class _Change(NamedTuple):
    """Text of 2.7 to be replaced, as a regular expression that is searched for; its replacement, and the code, None for
    the one that it has; the calls that it is about, none for all; and the place in 2.12's source."""

    text: str
    later: str
    source: str
    code: grpc.StatusCode | None = None
    calls: frozenset[str] = frozenset()


def _of(*calls: str) -> frozenset[str]:
    return frozenset(calls)


_PIPELINES = _of("CreatePipeline", "CreatePipelineV2")
_PICKING = _of(
    "StartCommit", "FinishCommit", "ClearCommit", "InspectCommit", "ListCommit", "SubscribeCommit", "FindCommits",
    "CreateBranch", "ModifyFile", "GetFile", "GetFileTAR", "InspectFile", "ListFile", "WalkFile", "GlobFile",
    "DiffFile", "GetFileSet", "AddFileSet", "Egress",
)  # fmt: skip
"""The calls that look for a commit by what a request says of it."""

_CHANGES = (
    # A commit is picked by its id, a branch or an ancestry: `pickCommitTx`.
    _Change(
        rf'branch "(?P<branch>[^"]*)" not found in repo {_TYPED}$',
        r'pick commit tx: commit \g<repo>@ not found\nbranch "\g<branch>" not found in repo \g<repo>',
        "commit:529,536",
        calls=_PICKING,
    ),
    _Change(
        rf"commit (?P<commit>{_TYPED}@{_ID}) not found$",
        r"pick commit tx: commit \g<commit> not found\ncommit \g<commit> not found",
        "commit:531,536",
        calls=_PICKING,
    ),
    _Change(
        r"commit (?P<commit>\S+@\S+[~^]\S*) not found$",
        r"pick commit tx: picking commit: invalid offset for ancestor of commit: \g<commit>",
        "pfsdb/commits.go:1217",
        _UNKNOWN,
        _PICKING,
    ),
    _Change(
        r"commit (?P<commit>\S+@\S+\.\d+) not found$",
        r"pick commit tx: picking commit: invalid offset from branch root for head commit: \g<commit>",
        "pfsdb/commits.go:1249",
        _UNKNOWN,
        _PICKING,
    ),
    _Change(
        r'invalid ancestry syntax "(?P<text>[^"]*)", cannot mix . and . characters$',
        r"pick commit tx: calculate offset \g<text>: count offset and clean: invalid ancestry format",
        "commit:503",
        calls=_PICKING,
    ),
    _Change(
        r"cannot resolve commit with no ID or branch",
        "pick commit tx: cannot pick commit with no ID or branch",
        "commit:482",
    ),
    _Change(
        rf"invalid commit ID given with a branch \({_REPO}@(?P<branch>[^)]*)\): (?P<id>\S+)\n?",
        r'pick commit tx: commit \g<repo>@\g<id> not found\nbranch "\g<branch>" not found in repo \g<repo>',
        "commit:529,536",
        _NOT_FOUND,
    ),
    _Change("^(?=pick commit tx: )", "get file: ", "api:657", calls=_of("GetFile")),
    _Change("^(?=pick commit tx: )", "finish commit in transaction: ", "api:285", calls=_of("FinishCommit")),
    _Change(
        r"^commit \S+ was deleted$",
        r"inspect finishing or finished commit: \g<0>",
        "commit:445",
        calls=_of("InspectCommit"),
    ),
    _Change(r"^(?=repo \S+ not found$)", "ensure repo exists: ", "commit:592", calls=_of("ListCommit")),
    # StartCommit.
    _Change(
        "parent commit (not found: |\\S+ has not been finished)",
        r"create commit: \g<0>",
        "commit:153",
        calls=_of("StartCommit"),
    ),
    _Change(
        rf"inconsistent dependencies: cannot create commit from {_REPO}@{_ID}",
        r"commit \g<repo>.user@\g<id> already exists\n\g<0>",
        "commit:112",
        grpc.StatusCode.ALREADY_EXISTS,
    ),
    _Change(r"commit \S+ already exists\n", r"create commit: \g<0>", "commit:153", calls=_of("StartCommit")),
    _Change(
        r"^(?P<which>error running request \d+ of \d+: )?",
        r"\g<which>start commit in transaction: ",
        "api:260",
        calls=_of("StartCommit"),
    ),
    _Change(
        "^first message must specify an input$",
        "server receive: rpc error: code = InvalidArgument desc = validate recv: invalid CreateDatumRequest.Start: "
        "embedded message failed validation | caused by: invalid StartCreateDatumRequest.Input: value is required",
        "src/pps/pps.pb.validate.go:6982",
        _INVALID,
        _of("CreateDatum"),
    ),
    # Branches and repos.
    _Change(
        rf'^branch "(?P<branch>[^"]*)" not found in repo {_TYPED}$',
        r"walk branch provenance: pick branches: picking branch: branch (id=0, branch=\g<repo>@\g<branch>) not found",
        "val_server.go:318,354, pfsdb/branches.go:899",
        calls=_of("WalkBranchProvenance"),
    ),
    _Change(
        "^branch cannot be nil$",
        "validate request: invalid DeleteBranchRequest.Branch: value is required",
        "src/pfs/pfs.pb.validate.go:8130",
        _INVALID,
        _of("DeleteBranch"),
    ),
    _Change(
        rf'^branch "(?P<branch>[^"]*)" not found in repo {_TYPED}$',
        r"inspect branch in transaction: branch (id=0, branch=\g<repo>@\g<branch>) not found\n\g<0>",
        "branch:398,426",
        calls=_of("InspectBranch"),
    ),
    _Change(
        rf"^repo {_REPO} not found$",
        r"get commit by commit key: repo (id=0, project=\g<project>, name=\g<name>, type=user) not found",
        "pfsdb/commits.go:458",
        calls=_of("CreateBranch"),
    ),
    _Change(
        rf'branch "{_REPO}@(?P<branch>[^"]*)" cannot be both in "(?P<other>[^"@]*)@(?P<of>[^"]*)"\'s provenance and '
        "subvenance",
        r"create branch: update head: cycle detected because \g<repo>.user@\g<branch> is already in the subvenance of "
        r"\g<other>.user@\g<of>",
        "branch:196,301, pfsdb/branches.go:81",
        _INTERNAL,
    ),
    _Change(
        "^bad key: branch name", "create branch: update head: branch name", "branch:196,301, pfsdb/branches.go:290"
    ),
    _Change(
        rf"^delete branch {_REPO}@(?P<branch>\S+): branch \S+ has (?P<others>\[.*\]) as subvenance, deleting it .*",
        r'delete branch \g<repo>@\g<branch>: branch "\g<repo>@\g<branch>" cannot be deleted because it'
        r"'s in the direct provenance of \g<others>",
        "pfsdb/branches.go:401",
    ),
    _Change(
        r"branch (?P<branch>\S+) has (?P<others>\[.*\]) as subvenance, deleting it would break those branches",
        r'branch "\g<branch>" cannot be deleted because it' + r"'s in the direct provenance of \g<others>",
        "pfsdb/branches.go:401",
    ),
    _Change("^(?=delete branch |error checking whether repo )", "delete repo: ", "api:228", calls=_of("DeleteRepo")),
    _Change(
        rf"(?P<why>cannot create a system repo without a corresponding 'user' repo: )repo {_REPO} not found",
        r"\g<why>repo (id=0, project=\g<project>, name=\g<name>, type=user) not found",
        "repo:63, pfsdb/repos.go:59",
    ),
    _Change(
        "parsing fileset.ID: too short to be ID",
        "parsing fileset.Token: too short to be Token",
        "src/internal/storage/fileset/fileset.go:96",
    ),
    # Projects.
    _Change(
        r'^could not create project: (?P<text>project "(?P<name>[^"]*)" already exists)$',
        r"\g<text>\nproject \g<name> already exists",
        "project:91, pfsdb/projects.go:54",
    ),
    _Change(
        r'(?P<what>(?:cannot find|error getting) project "[^"]*": )(?=project )',
        r"\g<what>get project by name: ",
        "pfsdb/projects.go:200",
    ),
    # Pipelines.
    _Change(
        r'(?P<what>spec for pipeline "(?P<pipeline>[^"]*)": )branch "master" not found in repo (?P<repo>\S+)$',
        r"\g<what>pick commit tx: commit \g<repo>@ not found\nrepo \g<repo> not found\n"
        r'pipeline "\g<pipeline>" not found',
        "commit:527,536",
    ),
    _Change(
        "must be one of 'until_success' or 'every_job'",
        'must be one of "until_success" or "every_job"',
        "pps/defaults.go:367",
    ),
    _Change(
        "^(?=malformed Pod(Spec|Patch)|invalid pipeline spec: )",
        "could not make effective spec: invalid effective spec: ",
        "pps/api_server.go:2305, pps/defaults.go:349",
        _INVALID,
        _PIPELINES,
    ),
)


def since_2_12(method: str, code: grpc.StatusCode, text: str) -> tuple[grpc.StatusCode, str]:
    """The status code and text of 2.12 for those of 2.7 with which `method` ("service/Method") was refused. Rows are
    applied in their order, each to what those before have made."""
    call = method.rpartition("/")[2]
    for change in _CHANGES:
        if not change.calls or call in change.calls:
            later, found = re.subn(change.text, change.later, text, count=1)
            if found:
                code, text = change.code or code, later
    return code, text
