"""A tab of a real browser that shows the page: what a user does there, and what the page must never do."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, FilePayload, Locator, Page, Request, expect

CHROMIUM = "/usr/bin/chromium"

WAIT = 20_000.0
"""Milliseconds to wait for what must come."""

_REFUSED = "Failed to load resource"
"""The console's line on a response of 4xx or 5xx, which is not a fault of the page."""


def given(name: str, content: bytes) -> FilePayload:
    """A file for the browser's dialogs."""
    return {"name": name, "mimeType": "image/png", "buffer": content}


@dataclass
class Tab:
    """A tab, and what went wrong in it: lines of the console, exceptions, and requests to elsewhere."""

    page: Page
    origin: str
    faults: list[str] = field(default_factory=list)

    @property
    def context(self) -> BrowserContext:
        """Its browser context, with cookies and storage of its own."""
        return self.page.context

    def open(self, path: str = "/") -> Tab:
        """Goes to an address of the service."""
        self.page.goto(self.origin + path)
        return self

    def find(self, selector: str) -> Locator:
        """Elements by a selector of CSS, or by one of Playwright's."""
        return self.page.locator(selector)

    def button(self, name: str) -> Locator:
        """The button of that exact name, as screen readers say it."""
        return self.page.get_by_role("button", name=name, exact=True)

    def choose(self, *files: tuple[str, bytes], camera: bool = False) -> None:
        """Chooses files in the dialog of the browser, or takes a photograph."""
        self.find("#camera" if camera else "#files").set_input_files([given(name, content) for name, content in files])

    def arrive(self, event: str, *files: tuple[str, bytes], text: str = "", onto: str = "body") -> None:
        """Drops or pastes files, or a text: the events that the browser sends, with a real DataTransfer."""
        encoded = [{"name": name, "data": base64.b64encode(content).decode()} for name, content in files]
        self.page.evaluate(_ARRIVE, [event, encoded, text, onto])

    @property
    def title(self) -> Locator:
        """The heading of an answer."""
        return self.find("#title")

    @property
    def tiles(self) -> Locator:
        """The tiles that are seen."""
        return self.find(".tile:visible")

    def answered(self, title: str, tiles: int | None = None) -> None:
        """Waits for the answer with that heading. tiles: how many it has, without folded ones."""
        expect(self.title).to_have_text(f"Pictures like {title}", timeout=WAIT)
        expect(self.find("#results[aria-busy=true]")).to_have_count(0, timeout=WAIT)
        expect(self.find("#notice")).to_be_hidden(timeout=WAIT)
        if tiles is not None:
            expect(self.find("#tiles .tile:not(.unfolded)")).to_have_count(tiles, timeout=WAIT)

    def notice(self, text: str) -> None:
        """Waits for a notice with that text."""
        expect(self.find("#notice")).to_contain_text(text, timeout=WAIT)

    def message(self, text: str) -> None:
        """Waits for a passing message with that text."""
        expect(self.find("#message [role=alert]")).to_contain_text(text, timeout=WAIT)

    def names(self) -> Sequence[str]:
        """The names under the tiles that are seen."""
        return [each.strip() for each in self.find(".tile:visible .name bdi").all_text_contents()]

    def colour(self, selector: str) -> int:
        """How bright the background of an element is, 0 to 255."""
        style = self.page.evaluate("s => getComputedStyle(document.querySelector(s)).backgroundColor", selector)
        return int(sum(int(part) for part in style.removeprefix("rgb(").removesuffix(")").split(",")) / 3)


@contextmanager
def tab(browser: Browser, origin: str, **options: Any) -> Iterator[Tab]:
    """A tab of its own for an origin; nothing may have gone wrong in it at the end of the block."""
    context = browser.new_context(**options)
    context.set_default_timeout(WAIT)
    context.grant_permissions(["clipboard-read", "clipboard-write"], origin=origin)
    found = Tab(context.new_page(), origin)

    def logged(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and not message.text.startswith(_REFUSED):
            found.faults.append(message.text)

    def requested(request: Request) -> None:
        if not request.url.startswith((origin, "data:", f"blob:{origin}")):
            found.faults.append(f"requested {request.url}")

    context.on("request", requested)
    # Playwright does not wait until dialogs are intercepted when a test begins to expect one.
    found.page.on("filechooser", lambda _: None)
    found.page.on("console", logged)
    found.page.on("pageerror", lambda error: found.faults.append(str(error)))
    try:
        yield found
        assert found.faults == []
    finally:
        context.close()


def violations(page: Page) -> list[str]:
    """The elements with names missing for screen readers, doubled ids, or markup that no text should have made."""
    found: list[str] = json.loads(page.evaluate(_FLAWS))
    return found


_ARRIVE = """([event, files, text, onto]) => {
  const transfer = new DataTransfer();
  for (const { name, data } of files) {
    const bytes = Uint8Array.from(atob(data), (each) => each.charCodeAt(0));
    transfer.items.add(new File([bytes], name, { type: "image/png" }));
  }
  if (text) transfer.setData(event === "paste" ? "text/plain" : "text/uri-list", text);
  const options = { bubbles: true, cancelable: true };
  const target = document.querySelector(onto);
  if (event === "paste") {
    return target.dispatchEvent(new ClipboardEvent("paste", { ...options, clipboardData: transfer }));
  }
  for (const each of ["dragenter", "dragover", "drop"]) {
    target.dispatchEvent(new DragEvent(each, { ...options, dataTransfer: transfer }));
  }
}"""

_FLAWS = """() => {
  const flaws = [];
  const ids = [...document.querySelectorAll("[id]")].map((each) => each.id);
  flaws.push(...ids.filter((id, place) => ids.indexOf(id) !== place).map((id) => `two of #${id}`));
  const named = (each) => each.getAttribute("aria-label") || each.getAttribute("aria-labelledby") || each.title ||
    each.innerText?.trim() || each.labels?.length || each.querySelector("img[alt]:not([alt=''])");
  for (const each of document.querySelectorAll("a, button, input, select, textarea, [role=region], dialog[open]")) {
    if (each.checkVisibility() && !named(each)) flaws.push(`no name: ${each.outerHTML.slice(0, 120)}`);
  }
  for (const each of document.querySelectorAll("img:not([alt])")) flaws.push(`no alt: ${each.src}`);
  return JSON.stringify(flaws);
}"""
