"""Parts of listings: the pages that requests since 2.10 may ask for, and the numbers that all may."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TypeVar

from localpachd.api.schema.schema import pfs_pb2, pps_pb2

T = TypeVar("T")


def page_of(found: Sequence[T], page: pfs_pb2.RepoPage | pps_pb2.PipelinePage) -> Sequence[T]:
    """The requested page of a listing; the whole listing if the page has no size."""
    size, index = page.page_size, page.page_index
    return found[index * size :][:size] if size > 0 else found


def first_items(found: Iterable[T], number: int) -> Iterable[T]:
    """As many as the request wants; without a number, and with a negative one, all."""
    return islice(found, number) if number > 0 else found
