"""Coroutines run to their end from a test."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Value = TypeVar("Value")


def run_coroutine(work: Coroutine[Any, Any, Value]) -> Value:
    """The result of a coroutine, in an event loop and a thread of its own: Playwright keeps a loop running in the
    thread of the tests from the first test of a page on."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
