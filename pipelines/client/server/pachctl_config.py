"""pachctl's configuration: its file and its contexts, the servers that it knows by name."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.errors import LookalikeError

_IN_CONTAINERS = Path("/pachctl/config.json")
"""The configuration that Pachyderm mounts into containers that may talk to it."""


def config_path(environment: Mapping[str, str]) -> Path:
    """pachctl's configuration file: $PACH_CONFIG, else that of a container, else ~/.pachyderm/config.json."""
    named = environment.get("PACH_CONFIG")
    if named:
        return Path(named)
    return _IN_CONTAINERS if _IN_CONTAINERS.exists() else Path.home() / ".pachyderm" / "config.json"


def read_config(path: Path) -> dict[str, Any]:
    """pachctl's configuration, with an object `v2` in it and objects in its `contexts`; both empty where there is no
    file. Raises LookalikeError for anything else."""
    try:
        config = json.loads(path.read_text())
    except FileNotFoundError:
        config = {}
    except OSError as error:
        raise LookalikeError(f"cannot read pachctl's configuration {path}: {error.strerror}") from error
    except ValueError as error:
        raise LookalikeError(f"pachctl's configuration {path} is not JSON: {error}") from error
    v2 = config.setdefault("v2", {}) if isinstance(config, dict) else None
    contexts = v2.setdefault("contexts", {}) if isinstance(v2, dict) else None
    if not isinstance(contexts, dict) or not all(isinstance(each, dict) for each in contexts.values()):
        raise LookalikeError(f"{path} is not pachctl's configuration: correct it, or name another in PACH_CONFIG")
    return dict(config)


def write_config(path: Path, config: Mapping[str, Any]) -> None:
    """Replaces pachctl's configuration."""
    path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    scratch = path.with_name(path.name + ".lookalike")
    scratch.touch(mode=0o600)
    scratch.write_text(json.dumps(config, indent=2) + "\n")
    if path.exists():
        shutil.copymode(path, scratch)
    scratch.replace(path)


def active(environment: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """The name of the context that pachctl would use, "" if none, and the context, empty if it does not exist."""
    v2 = read_config(config_path(environment))["v2"]
    name = environment.get("PACH_CONTEXT") or v2.get("active_context") or ""
    return name, v2["contexts"].get(name, {})


def of_address(address: str, environment: Mapping[str, str]) -> dict[str, Any]:
    """The context with this address; empty if there is none."""
    contexts = read_config(config_path(environment))["v2"]["contexts"].values()
    return next((dict(each) for each in contexts if each.get("pachd_address") == address), {})
