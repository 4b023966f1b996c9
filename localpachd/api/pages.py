"""Pages of listings, which requests of 2.10 and later may ask for."""

from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def of(found: Sequence[T], request: Any) -> Sequence[T]:
    """The page that a request asks for of what was found; without one, all."""
    size, index = request.page.page_size, request.page.page_index
    return found[index * size :][:size] if size > 0 else found
