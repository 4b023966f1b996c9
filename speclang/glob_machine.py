"""Matches any glob in polynomial time. Knows no syntax: it is given tokens.

A regular expression tries one way to match after another, and some patterns have exponentially many. The machine tries
them in the same order, but never visits one place of the program twice at one place of the path: it would fail again.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from speclang.glob_tokens import GlobToken, fold, negations_reach_the_end

_Marks = tuple[int, int, "_Marks"] | None
"""The ends of captures so far: which end, where in the path, and those marked before it."""

_State = tuple[int, int, _Marks]
"""A place in the program, a place in the path, and the marks made on the way."""

_Step = Callable[["_Run", _State], _State | None]
"""An instruction: gives the next state, or None where the match fails. Jumps are relative, so programs can be joined as
they are."""

_DONE = -1
"""The place behind the end of the program."""


@dataclass(frozen=True, slots=True)
class GlobMachine:
    """A compiled pattern. A match takes time proportional to the length of the pattern times that of the path; with
    negations, to the square of it."""

    program: Sequence[_Step]
    groups: int

    def match(self, path: str) -> tuple[str, ...] | None:
        """Matches a whole path. Returns what each group captured, in the order in which groups open, or None; "" stands
        for a group that took no part."""
        found = _Run(self.program, path).go((0, 0, None))
        if found is None:
            return None
        ends: dict[int, int] = {}
        marks = found[2]
        while marks is not None:
            end, at, marks = marks
            ends.setdefault(end, at)
        return tuple(
            path[ends[2 * group] : ends[2 * group + 1]] if 2 * group in ends else "" for group in range(self.groups)
        )


def assemble(tokens: Sequence[GlobToken]) -> GlobMachine:
    """The machine for a pattern's tokens."""
    to_the_end = negations_reach_the_end(tokens)

    def close(meaning: str, alternatives: Sequence[Sequence[_Step]], group: int) -> list[_Step]:
        either = _either(alternatives)
        if meaning == "{":
            return either
        if meaning == "!":
            either = [_refuse(len(either) + 1), *either, _end(to_the_end), *_loop([_char(_no_slash)])]
        elif meaning in "*?":
            either = _loop(either) if meaning == "*" else [_split(len(either) + 1), *either]
        elif meaning == "+":
            either = [_jump(2), *_loop(either)]
        return [_mark(2 * group), *either, _mark(2 * group + 1)]

    groups = sum(token.kind == "open" and token.text != "{" for token in tokens)
    return GlobMachine([*fold(tokens, _leaf, close), _end(whole=True)], groups)


def _leaf(token: GlobToken) -> list[_Step]:
    match token.kind:
        case "text":
            return [_text(token.text)]
        case "class":
            pattern = re.compile(token.text)
            return [_char(lambda here: pattern.match(here) is not None)]
        case "single":
            return [_char(_no_slash)]
        case "any":
            return _loop([_char(_no_slash)])
    return _loop([_char(lambda here: True)])


def _no_slash(here: str) -> bool:
    return here != "/"


def _either(alternatives: Sequence[Sequence[_Step]]) -> list[_Step]:
    """The first of the alternatives that leads to a match."""
    *others, last = alternatives
    program = list(last)
    for each in reversed(others):
        program = [_split(len(each) + 2), *each, _jump(len(program) + 1), *program]
    return program


def _loop(body: Sequence[_Step]) -> list[_Step]:
    """As many rounds as possible."""
    return [_split(len(body) + 2), *body, _back(-len(body) - 1), _once]


def _text(text: str) -> _Step:
    def step(run: "_Run", state: _State) -> _State | None:
        here, at, marks = state
        return (here + 1, at + len(text), marks) if run.path.startswith(text, at) else None

    return step


def _char(accepts: Callable[[str], bool]) -> _Step:
    def step(run: "_Run", state: _State) -> _State | None:
        here, at, marks = state
        return (here + 1, at + 1, marks) if at < len(run.path) and accepts(run.path[at]) else None

    return step


def _mark(end: int) -> _Step:
    def step(run: "_Run", state: _State) -> _State | None:
        here, at, marks = state
        return here + 1, at, (end, at, marks)

    return step


def _jump(by: int) -> _Step:
    def step(run: "_Run", state: _State) -> _State | None:
        here, at, marks = state
        return here + by, at, marks

    return step


def _split(by: int) -> _Step:
    """Continues with the next instruction and, if that fails, jumps."""

    def step(run: "_Run", state: _State) -> _State | None:
        here, at, marks = state
        if not run.first_time(here, at):
            return None
        run.put_off((here + by, at, marks))
        return here + 1, at, marks

    return step


def _back(by: int) -> _Step:
    """The end of a round: back to the beginning of the loop, or out of it after a round that matched nothing."""

    def step(run: "_Run", state: _State) -> _State | None:
        here, at, marks = state
        return (here + 1 if run.was_here(here + by, at) else here + by), at, marks

    return step


def _once(run: "_Run", state: _State) -> _State | None:
    here, at, marks = state
    return (here + 1, at, marks) if run.first_time(here, at) else None


def _refuse(size: int) -> _Step:
    """Skips the next `size` instructions, unless they match here."""

    def step(run: "_Run", state: _State) -> _State | None:
        here, at, marks = state
        return None if run.refused(here + 1, at) else (here + 1 + size, at, marks)

    return step


def _end(whole: bool) -> _Step:
    def step(run: "_Run", state: _State) -> _State | None:
        _, at, marks = state
        return (_DONE, at, marks) if at == len(run.path) or not whole else None

    return step


@dataclass(slots=True)
class _Run:
    """One run of a program on a path."""

    program: Sequence[_Step]
    path: str
    _been: set[tuple[int, int]] = field(default_factory=set)
    _later: list[_State] = field(default_factory=list)
    _refusals: dict[tuple[int, int], bool] = field(default_factory=dict)

    def go(self, state: _State | None) -> _State | None:
        """Follows the program from a state to its end. None if every way fails."""
        while state is not None and state[0] != _DONE:
            state = self.program[state[0]](self, state)
            if state is None and self._later:
                state = self._later.pop()
        return state

    def put_off(self, state: _State) -> None:
        self._later.append(state)

    def was_here(self, here: int, at: int) -> bool:
        return (here, at) in self._been

    def first_time(self, here: int, at: int) -> bool:
        if (here, at) in self._been:
            return False
        self._been.add((here, at))
        return True

    def refused(self, here: int, at: int) -> bool:
        """Whether the part of a negation that starts at `here` matches at a place of the path."""
        if (here, at) not in self._refusals:
            inner = _Run(self.program, self.path, _refusals=self._refusals)
            self._refusals[here, at] = inner.go((here, at, None)) is not None
        return self._refusals[here, at]
