"""What this machine's user has logged in with at an image registry: Docker's configuration and its helper programs."""

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
    """What to show the image's registry, in the terms of Docker's AuthConfig; None where nobody has logged in.

    Reads `$DOCKER_CONFIG/config.json`, else `.docker/config.json` below `home`; what cannot be read is passed over.
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
    """The name under which the registry of an image is found in the configuration."""
    first, slash, _ = image.partition("/")
    return first if slash and ("." in first or ":" in first or first == "localhost") else _DEFAULT


def _asked(helper: str, registry: str) -> dict[str, str] | None:
    """What a credential helper gives: a program `docker-credential-NAME` that is told the registry."""
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
    """What stands in the configuration itself."""
    try:
        if entry.get("identitytoken"):
            return {"identitytoken": str(entry["identitytoken"]), "serveraddress": registry}
        user, colon, password = base64.b64decode(entry["auth"]).decode().partition(":")
    except (AttributeError, KeyError, ValueError, TypeError):
        return None
    return {"username": user, "password": password, "serveraddress": registry} if colon else None
