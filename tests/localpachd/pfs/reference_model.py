"""A reference model of pfs in dictionaries: another reading of the rules that shares no code with the first."""

import copy
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

Key = tuple[str, str]
"""A commit by repo and id, or a branch by repo and name."""
Content = dict[str, bytes]
Request = tuple[str, tuple[object, ...]]
"""The name of a method of Model with its arguments."""


class RefusedError(Exception):
    """A step that the server must refuse; `at` is the index of the refused request, None for the step as a whole."""

    def __init__(self, at: int | None = None) -> None:
        self.at = at


def refuse_if(condition: object) -> None:
    if condition:
        raise RefusedError


@dataclass
class ModelCommit:
    """A commit. `content` is set once it is finished without error; until then it reads as `written` (None removes) on
    top of `floor` or, without one, of the commit that it is based on."""

    branch: str
    parent: Key | None
    provenance: set[Key]
    open: bool = True
    error: bool = False
    content: Content | None = None
    written: dict[str, bytes | None] = field(default_factory=dict)
    floor: Content | None = None


@dataclass
class ModelBranch:
    """A branch. `by_hand` while its head is one that a request gave it."""

    head: Key | None
    above: list[Key]
    by_hand: bool = False


class ReferenceModel:
    """Repos, branches and commits, and the work left for the end of the current step."""

    def __init__(self) -> None:
        self.repos: set[str] = set()
        self.branches: dict[Key, ModelBranch] = {}
        self.commits: dict[Key, ModelCommit] = {}
        self.id = ""
        self.moved: set[Key] = set()
        self.rewired: set[Key] = set()

    def after(self, id_: str, requests: Sequence[Request], whole: bool = True) -> "ReferenceModel":
        """The model after a step with this commit-set id; with `whole` false, before its end."""
        draft: ReferenceModel = pickle.loads(pickle.dumps(self, -1))  # several times faster than a deep copy
        draft.id, draft.moved, draft.rewired = id_, set(), set()
        for at, (name, arguments) in enumerate(requests):
            try:
                getattr(draft, name)(*arguments)
            except RefusedError as error:
                raise RefusedError(at) from error
        if whole:
            draft.complete()
        return draft

    # The requests.

    def create_repo(self, repo: str) -> None:
        refuse_if(repo in self.repos)
        self.repos.add(repo)

    def delete_repo(self, repo: str, force: bool) -> None:
        own = [each for each in self.branches if each[0] == repo]
        for branch in sorted(own, key=lambda each: -len(self.upstream(each))):
            self.delete_branch(*branch, force)
        for key in [key for key in self.commits if key[0] == repo]:
            self.erase(key)
        self.repos.discard(repo)

    def start(self, repo: str, name: str) -> None:
        refuse_if(repo not in self.repos)
        line = self.branches.setdefault((repo, name), ModelBranch(None, []))
        refuse_if(line.above)
        refuse_if(line.head and self.commits[line.head].open)
        line.head, line.by_hand = self.new(repo, name, line.head, set()), False
        self.moved.add((repo, name))

    def finish(self, key: Key, error: bool) -> None:
        key = self.resolve(key)
        commit = self.commits[key]
        refuse_if(not commit.open)
        if not error:
            commit.content = self.read(key)
            refuse_if(commit.content is None)
        commit.open, commit.error = False, error

    def create_branch(self, repo: str, name: str, head: Key | None, provenance: Sequence[Key]) -> None:
        refuse_if(repo not in self.repos)
        for above in provenance:
            refuse_if(above[0] == repo or above[0] not in self.repos)
            if above not in self.branches:
                made = (above[0], self.id)
                self.branches[above] = ModelBranch(made if made in self.commits else self.empty(above, None), [])
        branch, head = (repo, name), head and self.resolve(head)
        refuse_if(branch in self.branches and set(provenance) & self.downstream(branch))
        fresh = branch not in self.branches
        line = self.branches.get(branch) or ModelBranch(None, [])
        other = fresh or set(line.above) != set(provenance)
        target = head
        if (fresh and head is None) or (other and provenance):
            target = self.empty(branch, head or line.head, provenance)
        line.above = list(provenance)
        if target is not None:
            line.head, line.by_hand = target, target == head
            self.moved.add(branch)
        self.branches[branch] = line
        if other:
            self.rewired.add(branch)

    def delete_branch(self, repo: str, name: str, force: bool) -> None:
        branch = (repo, name)
        if branch not in self.branches:
            refuse_if(not force and repo not in self.repos)
            return
        refuse_if(self.downstream(branch) and not force)
        for below, line in list(self.branches.items()):
            if branch in line.above:
                self.create_branch(*below, None, [each for each in line.above if each != branch])
        del self.branches[branch]
        self.moved.discard(branch)
        self.rewired.discard(branch)

    def squash_set(self, id_: str) -> None:
        self.remove(self.whole_set(id_), with_children=True)

    def drop_set(self, id_: str) -> None:
        self.remove(self.whole_set(id_), with_children=False)

    def squash(self, key: Key, recursive: bool) -> None:
        self.remove(self.with_dependants(key, recursive), with_children=True)

    def drop(self, key: Key, recursive: bool) -> None:
        self.remove(self.with_dependants(key, recursive), with_children=False)

    # Their parts.

    def resolve(self, key: Key) -> Key:
        """The commit of this repo and id or, where the repo has none, the newest one in the provenance of that set."""
        if key in self.commits:
            return key
        members = [each for each in self.commits if each[1] == key[1]]
        above = {each for member in members for each in _reach(member, lambda of: self.commits[of].provenance)}
        found = [each for each in self.commits if each in above and each[0] == key[0]]
        refuse_if(not found)
        return found[-1]

    def new(self, repo: str, name: str, parent: Key | None, provenance: Iterable[Key]) -> Key:
        key = (repo, self.id)
        refuse_if(key in self.commits)
        self.commits[key] = ModelCommit(name, parent, set(provenance))
        return key

    def empty(self, branch: Key, parent: Key | None, above: Sequence[Key] = ()) -> Key:
        """An empty commit; with branches upstream it stays open, for a job to fill."""
        key = self.new(*branch, parent, (self.head(each) for each in above))
        if not above:
            self.commits[key].open, self.commits[key].content = False, {}
        return key

    def head(self, branch: Key) -> Key:
        head = self.branches[branch].head
        assert head is not None
        return head

    def children(self, key: Key) -> list[Key]:
        return [each for each, commit in self.commits.items() if commit.parent == key]

    def upstream(self, branch: Key) -> set[Key]:
        return _reach(branch, lambda each: self.branches[each].above)

    def downstream(self, branch: Key) -> set[Key]:
        return _reach(branch, lambda each: [b for b, line in self.branches.items() if each in line.above])

    def dependants(self, key: Key) -> list[Key]:
        return [each for each, commit in self.commits.items() if key in commit.provenance]

    def whole_set(self, id_: str) -> list[Key]:
        members = [key for key in self.commits if key[1] == id_]
        refuse_if(any(each[1] != id_ for key in members for each in _reach(key, self.dependants)))
        return members

    def with_dependants(self, key: Key, recursive: bool) -> list[Key]:
        key = self.resolve(key)
        below = _reach(key, self.dependants)
        refuse_if(below and not recursive)
        return [key, *below]

    def remove(self, doomed: Sequence[Key], with_children: bool) -> None:
        refuse_if(any(bool(self.children(key)) is not with_children for key in doomed))
        refuse_if(any(self.commits[child].open for key in doomed for child in self.children(key)))
        bereft = [branch for branch, line in self.branches.items() if line.head in doomed]
        for key in doomed:
            self.hand_down(key)
            parent = self.commits[key].parent
            for line in self.branches.values():
                line.head = parent if line.head == key else line.head
            for child in self.children(key):
                self.commits[child].parent = parent
            self.erase(key)
        for branch in self.repairs(bereft):
            self.repair_head(branch)

    def hand_down(self, key: Key) -> None:
        """Keeps the content of open commits based on a commit that is deleted."""
        gone = self.commits[key]
        for each in () if gone.error else self.standing_on(key):
            commit = self.commits[each]
            if commit.floor is None:
                commit.floor = gone.floor if gone.open else copy.copy(gone.content)
                if gone.open:
                    commit.written = {**gone.written, **commit.written}

    def standing_on(self, key: Key) -> Iterator[Key]:
        for child in self.children(key):
            if self.commits[child].error:  # no commit is based on a failed one, but on its parent
                yield from self.standing_on(child)
            if self.commits[child].content is None:
                yield child

    def erase(self, key: Key) -> None:
        del self.commits[key]
        for commit in self.commits.values():
            commit.provenance.discard(key)

    def repairs(self, bereft: Iterable[Key]) -> list[Key]:
        """The branches in the order of their repair: the deepest first, but none before one upstream."""
        order: list[Key] = []
        for branch in sorted(bereft, key=lambda each: -len(self.upstream(each))):
            found = [each for each in (*self.upstream(branch), branch) if each in bereft and each not in order]
            order += sorted(found, key=lambda each: len(self.upstream(each)))
        return order

    def repair_head(self, branch: Key) -> None:
        line = self.branches[branch]
        if line.head is None:
            made = (branch[0], self.id)
            shared = made in self.commits and {self.head(each) for each in line.above} <= self.commits[made].provenance
            line.head = made if shared else self.empty(branch, None, line.above)
        elif self.missing(branch):
            line.head = self.empty(branch, line.head, line.above)
        else:
            return
        line.by_hand = False
        self.moved.add(branch)

    def missing(self, branch: Key) -> set[Key]:
        """The branches upstream whose heads are not in the provenance of this one's head."""
        made_from = self.commits[self.head(branch)].provenance
        return {above for above in self.branches[branch].above if self.head(above) not in made_from}

    def complete(self) -> None:
        for branch in self.rewired:
            found = [each[0] for each in self.component(branch)]
            refuse_if(len(set(found)) != len(found))
        below = {each for branch in self.moved for each in self.downstream(branch)}
        for branch in sorted(below, key=lambda each: len(self.upstream(each))):
            line = self.branches[branch]
            heads = [self.head(each) for each in line.above]
            if self.head(branch)[1] == self.id:
                refuse_if(self.commits[self.head(branch)].branch != branch[1])
                self.commits[self.head(branch)].provenance = set(heads)
            else:
                line.head, line.by_hand = self.new(*branch, line.head, heads), False

    def component(self, branch: Key) -> set[Key]:
        def near(each: Key) -> set[Key]:
            return self.upstream(each) | self.downstream(each)

        return _reach(branch, near) | {branch}

    def read(self, key: Key) -> Content | None:
        """The content of a commit; None while its base is open."""
        commit = self.commits[key]
        if commit.content is not None:
            return commit.content
        below = commit.floor if commit.floor is not None else self.below(commit.parent)
        if below is None:
            return None
        merged: dict[str, bytes | None] = {**below, **commit.written}
        return {path: data for path, data in merged.items() if data is not None}

    def below(self, parent: Key | None) -> Content | None:
        while parent is not None and self.commits[parent].error:
            parent = self.commits[parent].parent
        return {} if parent is None else self.commits[parent].content


def _reach(start: Key, near: Callable[[Key], Iterable[Key]]) -> set[Key]:
    """Everything reachable from the start, itself excluded."""
    seen: set[Key] = {start}
    pending = [start]
    while pending:
        fresh = set(near(pending.pop())) - seen
        seen |= fresh
        pending.extend(fresh)
    return seen - {start}
