"""Images from registries: who is logged in where, and an image pulled from one that asks for a password."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import os
import tarfile
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from localpachd.worker.docker import pause
from localpachd.worker.docker.images import Images
from localpachd.worker.docker.registries import credentials
from tests import containers

_PASS = base64.b64encode(b"me:se:same").decode()
_SCHEMA = "application/vnd.docker.distribution.manifest.v2+json"


def _configured(home: Path, **config: Any) -> Path:
    (home / ".docker").mkdir(exist_ok=True)
    (home / ".docker" / "config.json").write_text(json.dumps(config))
    return home


def test_nobody_is_logged_in(tmp_path: Path) -> None:
    assert credentials("a.example/b:1", tmp_path, {}) is None
    auths: tuple[dict[str, Any], ...] = ({"a.example": {}}, {"a.example": {"auth": "?"}}, {"b": {}})
    for config in ({}, *({"auths": each} for each in auths)):
        assert credentials("a.example/b:1", _configured(tmp_path, **config), {}) is None
    (tmp_path / ".docker" / "config.json").write_text("no JSON")
    assert credentials("a.example/b:1", tmp_path, {}) is None


@pytest.mark.parametrize(
    ("image", "registry"),
    [
        ("a.example/b/c:1", "a.example"),
        ("localhost/b", "localhost"),
        ("host:5000/b@sha256:00", "host:5000"),
        ("ubuntu:20.04", "https://index.docker.io/v1/"),
        ("somebody/something", "https://index.docker.io/v1/"),
    ],
)
def test_what_the_configuration_says(tmp_path: Path, image: str, registry: str) -> None:
    home = _configured(tmp_path, auths={registry: {"auth": _PASS}})
    assert credentials(image, home, {}) == {"username": "me", "password": "se:same", "serveraddress": registry}
    (tmp_path / ".docker").rename(tmp_path / "elsewhere")
    assert credentials(image, home, {}) is None
    assert credentials(image, home, {"DOCKER_CONFIG": str(tmp_path / "elsewhere")}) is not None


def test_what_a_helper_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helper = tmp_path / "docker-credential-test"
    helper.write_text(
        '#!/bin/sh\nread -r registry\n[ "$1 $registry" = "get a.example" ] || { echo not found; exit 1; }\n'
        'echo "{\\"ServerURL\\": \\"a.example\\", \\"Username\\": \\"$NAME\\", \\"Secret\\": \\"sesame\\"}"\n'
    )
    helper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("NAME", "me")
    asked = {"username": "me", "password": "sesame", "serveraddress": "a.example"}
    assert credentials("a.example/b", _configured(tmp_path, credsStore="test"), {}) == asked
    assert credentials("a.example/b", _configured(tmp_path, credHelpers={"a.example": "test"}), {}) == asked
    assert credentials("b.example/b", _configured(tmp_path, credsStore="test"), {}) is None
    assert credentials("a.example/b", _configured(tmp_path, credsStore="absent"), {}) is None
    monkeypatch.setenv("NAME", "<token>")
    token = credentials("a.example/b", _configured(tmp_path, credsStore="test"), {})
    assert token == {"identitytoken": "sesame", "serveraddress": "a.example"}


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[int]:
    """The port of a registry that has one image, `bare:1`, for those who know the password."""
    pause.write(tmp_path / "pause", os.uname().machine)
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
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_port
    server.shutdown()
    thread.join()
    server.server_close()


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
    monkeypatch.setenv("DOCKER_CONFIG", str(_configured(tmp_path, auths=auths) / ".docker"))
    images = Images(engine, lambda: None)
    try:
        until = time.monotonic() + 60
        while (status := images.wanted([name])[name]).coming and time.monotonic() < until:
            time.sleep(0.02)
        assert status.ready is known, status
        assert known or "no basic auth credentials" in status.reason
    finally:
        images.close()
        containers.unload(name)
