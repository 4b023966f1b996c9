"""The images that pipelines want: their status on this machine, and fetching missing ones. Runs nothing."""

import base64
import json
import logging
import threading
from collections.abc import Callable, Collection, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any

from localpachd.worker.docker.container_engine import ContainerEngine, EngineError, component
from localpachd.worker.docker.registry_credentials import credentials
from localpachd.worker.tasks import ImageStatus

_LOOK = 2.0
_FIRST_DELAY, _LONGEST_DELAY = 10.0, 300.0
"""Seconds between two checks for an image; those between two attempts to fetch it are a kubelet's."""

_INVALID = "invalid reference format"
"""Part of an engine's answer to a name that no image can have; its status varies."""
_READY = ImageStatus(ready=True)

_log = logging.getLogger(__name__)


class ImagePuller:
    """The status of each image; a change of status calls `changed`, from another thread. Thread-safe."""

    def __init__(self, engine: ContainerEngine, changed: Callable[[], None]) -> None:
        self._engine = engine
        self._changed = changed
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._known: dict[str, ImageStatus] = {}

    def wanted(self, images: Collection[str]) -> Mapping[str, ImageStatus]:
        """The status of these images; all others are forgotten."""
        with self._lock:
            self._known = {image: status for image, status in self._known.items() if image in images}
            new = [image for image in images if image not in self._known]
        for image in new:
            self._meet(image)
        with self._lock:
            return {image: self._known[image] for image in images if image in self._known}

    def lost(self, image: str) -> None:
        """Reports that an image that was ready has gone."""
        with self._lock:
            if self._known.get(image) != _READY:
                return
            del self._known[image]
        self._changed()

    def inspect(self, image: str) -> Mapping[str, Any]:
        """The engine's description of an image. Raises EngineError, also for a missing image."""
        found: Mapping[str, Any] = self._engine.call("GET", f"/images/{component(image)}/json")
        return found

    def close(self) -> None:
        """Stops looking for images."""
        self._closed.set()

    def _meet(self, image: str) -> None:
        there, failure = self._there(image)
        status = _READY if there else failure or ImageStatus(False, coming=True, reason=f"pulling image {image}")
        with self._lock:
            if image in self._known:
                return
            self._known[image] = status
        if not there:
            threading.Thread(target=self._watch, args=(image,), name=f"image {image}", daemon=True).start()

    def _watch(self, image: str) -> None:
        """Looks for an image, and tries to fetch it, until it has arrived or is no longer wanted."""
        delay, left = _FIRST_DELAY, 0.0
        while not self._closed.is_set():
            there, failure = self._there(image)
            if not there and left <= 0:
                failure = failure or self._fetch(image)
                there = failure is None
                left, delay = delay, min(2 * delay, _LONGEST_DELAY)
            if there:
                self._learn(image, _READY)
                return
            if failure is not None and not self._learn(image, failure):
                return
            if self._closed.wait(_LOOK):
                return
            left -= _LOOK
            if not self._is_wanted(image):
                return

    def _there(self, image: str) -> tuple[bool, ImageStatus | None]:
        """Whether an image is on this machine, and the error if that cannot be found out."""
        try:
            self.inspect(image)
        except EngineError as failure:
            if failure.status == HTTPStatus.NOT_FOUND or _INVALID in str(failure):
                return False, None
            return False, ImageStatus(False, reason=f"ErrImagePull: {failure}")
        return True, None

    def _fetch(self, image: str) -> ImageStatus | None:
        """Pulls an image; returns the error, or None."""
        name = image if "@" in image or ":" in image.rpartition("/")[2] else f"{image}:latest"
        _log.info("pulling image %s", name)
        headers = {}
        found = credentials(image, Path.home())
        if found is not None:
            headers["X-Registry-Auth"] = base64.urlsafe_b64encode(json.dumps(found).encode()).decode()
        try:
            for report in self._engine.progress("/images/create", headers, fromImage=name):
                if report.get("error"):
                    raise EngineError(str(report["error"]), HTTPStatus.INTERNAL_SERVER_ERROR)
        except (EngineError, ValueError) as failure:
            kind = "InvalidImageName" if _INVALID in str(failure) else "ErrImagePull"
            return ImageStatus(
                False, reason=f"{kind}: image {image} is not on this machine and cannot be pulled: {failure}"
            )
        return None

    def _learn(self, image: str, status: ImageStatus) -> bool:
        """Records the status of an image; False when it is no longer wanted."""
        with self._lock:
            before = self._known.get(image)
            if before is None:
                return False
            self._known[image] = status
        if status != before:
            self._changed()
        return True

    def _is_wanted(self, image: str) -> bool:
        with self._lock:
            return image in self._known and not self._known[image].ready
