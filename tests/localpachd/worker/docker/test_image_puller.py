"""The images on this machine: missing ones, invalid names, and pulling from a registry that asks for a password."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import os
import tarfile
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from localpachd.worker.docker import container
from localpachd.worker.docker.image_puller import ImagePuller
from tests import containers
from tests.conditions import until
from tests.http_servers import serving

_PASS = base64.b64encode(b"me:se:same").decode()

_SCHEMA = "application/vnd.docker.distribution.manifest.v2+json"


@pytest.mark.docker
def test_an_image_is_missing_and_arrives() -> None:
    name, changes = f"localpachd-test-late:{uuid.uuid4().hex[:8]}", []
    images = ImagePuller(containers.found(), lambda: changes.append(1))
    try:
        first = images.wanted([name])[name]
        assert (first.ready, first.coming, first.reason) == (False, True, f"pulling image {name}")
        until(lambda: not images.wanted([name])[name].coming)
        missing = images.wanted([name])[name]
        assert not missing.ready
        assert missing.reason.startswith(f"ErrImagePull: image {name} is not on this machine and cannot be pulled: ")
        containers.tag(containers.image(), name)
        until(lambda: images.wanted([name])[name].ready)
        assert len(changes) == 2
        images.lost(name)
        assert len(changes) == 3
    finally:
        images.close()
        containers.unload(name)


@pytest.mark.docker
def test_an_invalid_name_is_the_reason() -> None:
    images = ImagePuller(containers.found(), lambda: None)
    try:
        until(lambda: not images.wanted(["Not A Name"])["Not A Name"].coming)
        assert images.wanted(["Not A Name"])["Not A Name"].reason.startswith("InvalidImageName: image Not A Name is ")
    finally:
        images.close()


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[int]:
    """The port of a registry with one image, `bare:1`, for callers with the password."""
    container.write_pause_binary(tmp_path / "pause", os.uname().machine)
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tar:
        tar.add(tmp_path / "pause", "pause")
    layer = gzip.compress(held.getvalue())
    architecture = {"x86_64": "amd64", "aarch64": "arm64"}.get(os.uname().machine, os.uname().machine)
    config = json.dumps(
        {
            "architecture": architecture, "os": "linux", "config": {"Cmd": ["/pause"]},
            "rootfs": {"type": "layers", "diff_ids": [_digest(held.getvalue())]},
        }
    ).encode()  # fmt: skip
    manifest = json.dumps(
        {
            "schemaVersion": 2, "mediaType": _SCHEMA,
            "config": _described("application/vnd.docker.container.image.v1+json", config),
            "layers": [_described("application/vnd.docker.image.rootfs.diff.tar.gzip", layer)],
        }
    ).encode()  # fmt: skip
    served = {f"/v2/bare/blobs/{_digest(data)}": data for data in (config, layer)}
    served |= {f"/v2/bare/manifests/{name}": manifest for name in ("1", _digest(manifest))} | {"/v2/": b"{}"}

    class Registry(BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            known = self.headers.get("Authorization") == f"Basic {_PASS}"
            data = served.get(self.path) if known else None
            self.send_response(401 if not known else 404 if data is None else 200)
            self.send_header("WWW-Authenticate", 'Basic realm="test"')
            self.send_header("Content-Type", _SCHEMA if "manifests" in self.path else "application/octet-stream")
            self.send_header("Docker-Content-Digest", _digest(data or b""))
            self.send_header("Content-Length", str(len(data or b"")))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(data or b"")

        do_HEAD = do_GET

    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    with serving(server):
        yield server.server_port


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _described(kind: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": kind, "size": len(data), "digest": _digest(data)}


@pytest.mark.docker
@pytest.mark.parametrize("known", [True, False], ids=["logged in", "a stranger"])
def test_an_image_is_pulled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, registry: int, known: bool) -> None:
    engine = containers.found()
    if engine.podman:
        pytest.skip("Podman takes no registry without TLS unless it is configured to")
    name = f"127.0.0.1:{registry}/bare:1"
    auths = {f"127.0.0.1:{registry}": {"auth": _PASS}} if known else {}
    (tmp_path / "config.json").write_text(json.dumps({"auths": auths}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    images = ImagePuller(engine, lambda: None)
    try:
        until(lambda: not images.wanted([name])[name].coming)
        status = images.wanted([name])[name]
        assert status.ready is known, status
        assert known or "no basic auth credentials" in status.reason
    finally:
        images.close()
        containers.unload(name)
