"""The room for what is under way, and a client's share of it."""

from contextlib import ExitStack

import pytest

from stages.serving.answer.load_limiter import LoadBudget
from stages.serving.follow.refusals import Refusal


def test_one_client_leaves_half_of_the_room_to_others() -> None:
    budget = LoadBudget(10)
    with ExitStack() as held:
        held.enter_context(budget.room(4, "one"))
        with pytest.raises(Refusal), budget.room(2, "one"):
            pass
        held.enter_context(budget.room(5, "other"))
        with pytest.raises(Refusal), budget.room(2):
            pass
        held.enter_context(budget.room(1))
    with budget.room(10), pytest.raises(Refusal), budget.room(1):
        pass


def test_one_alone_has_room_however_large_it_is() -> None:
    budget = LoadBudget(10)
    for client in ("", "one"):
        with budget.room(100, client):
            pass
