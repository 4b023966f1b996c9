"""Credentials for image registries, from Docker's configuration and its helper programs. Calls no registry."""

import base64
import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_DEFAULT = "https://index.docker.io/v1/"
_HELPER_SECONDS = 20


def credentials(image: str, home: Path, environment: Mapping[str, str] = os.environ) -> dict[str, str] | None:
    """The credentials for an image's registry, as Docker's AuthConfig; None if the user has not logged in there.

    Reads `$DOCKER_CONFIG/config.json`, or else `.docker/config.json` below `home`; ignores what cannot be read.
    """
    folder = Path(environment.get("DOCKER_CONFIG") or home / ".docker")
    try:
        config = json.loads((folder / "config.json").read_text())
    except (OSError, ValueError):
        return None
    if not isinstance(config, dict):
        return None
    registry = _registry(image)
    helper = config.get("credHelpers", {}).get(registry) or config.get("credsStore")
    if helper:
        return _asked(str(helper), registry)
    return _written(config.get("auths", {}).get(registry, {}), registry)


def _registry(image: str) -> str:
    """The name of an image's registry in the configuration."""
    first, slash, _ = image.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else _DEFAULT


def _asked(helper: str, registry: str) -> dict[str, str] | None:
    """The credentials from a credential helper, a program `docker-credential-NAME` that reads the registry's name."""
    try:
        asked = subprocess.run(
            [f"docker-credential-{helper}", "get"],
            input=registry,
            capture_output=True,
            text=True,
            timeout=_HELPER_SECONDS,
            check=True,
        )
        found = json.loads(asked.stdout)
        user, secret = str(found["Username"]), str(found["Secret"])
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError):
        return None
    if user == "<token>":
        return {"identitytoken": secret, "serveraddress": registry}
    return {"username": user, "password": secret, "serveraddress": registry}


def _written(entry: Any, registry: str) -> dict[str, str] | None:
    """The credentials from an entry of the configuration itself."""
    try:
        if entry.get("identitytoken"):
            return {"identitytoken": str(entry["identitytoken"]), "serveraddress": registry}
        user, colon, password = base64.b64decode(entry["auth"]).decode().partition(":")
    except (AttributeError, KeyError, ValueError, TypeError):
        return None
    return {"username": user, "password": password, "serveraddress": registry} if colon else None
