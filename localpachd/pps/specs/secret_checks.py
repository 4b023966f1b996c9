"""The secrets that a pipeline asks for, checked against those that exist. Reads their keys, not their values."""

import re
from collections.abc import Mapping
from typing import Any

from localpachd.errors import NotFound, PachError
from localpachd.worker.secret_store import SecretStore

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def check(request: Mapping[str, Any], secrets: SecretStore) -> None:
    """Refuses secrets that the transform of a CreatePipelineRequest (protojson, snake_case names) cannot have. The
    first three texts are Pachyderm's; the other faults would show on a cluster only when its pods start."""
    uses = request.get("transform", {}).get("secrets", ())
    for use in uses:
        name, key, variable = use.get("name", ""), use.get("key", ""), use.get("env_var", "")
        if variable and not key:
            raise PachError(f"secret {name} has env_var set but is missing key")
        try:
            kept = secrets.get(name)
        except NotFound:
            raise PachError(f"missing Kubernetes secret {name}") from None
        if variable and key not in kept.data:
            raise PachError(f"Kubernetes secret {name} missing key {key}")
        if variable and not _VARIABLE.fullmatch(variable):
            raise PachError(f'secret {name} has env_var "{variable}": use letters, digits and underscores only')
    _check_mounts([use["mount_path"] for use in uses if use.get("mount_path")])


def _check_mounts(wanted: list[str]) -> None:
    places: list[list[str]] = []
    for path in wanted:
        parts = [part for part in path.split("/") if part]
        if not path.startswith("/") or not parts or {".", ".."} & set(parts) or parts[0] == "pfs":
            raise PachError(f'a secret has mount_path "{path}": it must be an absolute path outside /pfs')
        for other in places:
            if parts[: len(other)] == other or other[: len(parts)] == parts:
                raise PachError(f'a secret has mount_path "{path}", where another secret is mounted')
        places.append(parts)
