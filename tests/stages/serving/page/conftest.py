"""A real browser, and tabs in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from tests.stages.serving.page import tabs
from tests.stages.serving.page.tabs import CHROMIUM, Tab
from tests.stages.serving.services import Service

Open = Callable[..., Tab]
"""Opens a tab for a service (by default `service`) with options of Playwright's contexts."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's Chromium without a window."""
    if not Path(CHROMIUM).exists():
        pytest.skip(f"there is no browser at {CHROMIUM} (apt-get install chromium)")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser: Any) -> Iterator[Open]:
    """Opens tabs, and closes them after the test. A fault in one fails the test."""
    with ExitStack() as stack:

        def open(service: Service, **options: Any) -> Tab:
            return stack.enter_context(tabs.tab(browser, f"http://127.0.0.1:{service.port}", **options))

        yield open


@pytest.fixture
def tab(opened: Open, service: Service) -> Tab:
    """A tab with the page of the service, in a window as on a laptop."""
    return opened(service, viewport={"width": 1280, "height": 800}).open()
