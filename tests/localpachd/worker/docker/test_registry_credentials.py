"""Credentials for registries, from Docker's configuration and from helper programs."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from localpachd.worker.docker.registry_credentials import credentials

_PASS = base64.b64encode(b"me:se:same").decode()


def _configured(home: Path, **config: Any) -> Path:
    (home / ".docker").mkdir(exist_ok=True)
    (home / ".docker" / "config.json").write_text(json.dumps(config))
    return home


def test_without_a_login_there_are_no_credentials(tmp_path: Path) -> None:
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
def test_credentials_of_the_configuration(tmp_path: Path, image: str, registry: str) -> None:
    home = _configured(tmp_path, auths={registry: {"auth": _PASS}})
    assert credentials(image, home, {}) == {"username": "me", "password": "se:same", "serveraddress": registry}
    (tmp_path / ".docker").rename(tmp_path / "elsewhere")
    assert credentials(image, home, {}) is None
    assert credentials(image, home, {"DOCKER_CONFIG": str(tmp_path / "elsewhere")}) is not None


def test_credentials_of_a_helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
