"""Whether anybody may pull an image from its registry, by the registries' HTTP API. Knows no specification."""

import enum
import json
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping

from pipelines.specifications.image_reference import DEFAULT_TAG, ImageReference

_ANSWERS_WITHIN = 10.0
"""Time limit of a call in seconds."""

_HUB = "registry-1.docker.io"
"""The host of Docker Hub's images, which their names leave out."""

_MANIFESTS = ", ".join(
    f"application/vnd.{kind}+json"
    for kind in (
        "oci.image.index.v1",
        "oci.image.manifest.v1",
        "docker.distribution.manifest.list.v2",
        "docker.distribution.manifest.v2",
    )
)
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')


class ImageAvailability(enum.Enum):
    """A registry's answer about an image: present, absent, only for authenticated users, or unknown."""

    THERE = "there"
    MISSING = "missing"
    DENIED = "denied"
    SILENT = "silent"


def ask(image: ImageReference) -> ImageAvailability:
    """The answer of an image's registry to an anonymous request."""
    host = image.registry or _HUB
    path = image.where.removeprefix(f"{image.registry}/") if image.registry else image.where or "library/"
    scheme = "http" if re.fullmatch(r"(localhost|127\.[\d.]+)(:\d+)?", host) else "https"
    url = f"{scheme}://{host}/v2/{path}{image.name}/manifests/{image.digest or image.tag or DEFAULT_TAG}"
    headers = {"Accept": _MANIFESTS}
    try:
        status, challenge = _head(url, headers)
        if status == 401 and challenge.lower().startswith("bearer "):
            token = _token(dict(_CHALLENGE.findall(challenge)))
            status, _ = _head(url, {**headers, "Authorization": f"Bearer {token}"})
    except (OSError, ssl.SSLError, ValueError):
        return ImageAvailability.SILENT
    if status == 200:
        return ImageAvailability.THERE
    if status == 404:
        return ImageAvailability.MISSING
    return ImageAvailability.DENIED if status in (401, 403) else ImageAvailability.SILENT


def _head(url: str, headers: Mapping[str, str]) -> tuple[int, str]:
    """The status of a HEAD request, and the authentication that the server demands."""
    request = urllib.request.Request(url, headers=dict(headers), method="HEAD")
    try:
        with urllib.request.urlopen(request, timeout=_ANSWERS_WITHIN) as reply:
            return int(reply.status), ""
    except urllib.error.HTTPError as error:
        with error:
            return error.code, str(error.headers.get("WWW-Authenticate", ""))


def _token(challenge: Mapping[str, str]) -> str:
    """A token for anonymous requests, "" if the registry gives none. Raises OSError or ValueError."""
    query = urllib.parse.urlencode({name: challenge[name] for name in ("service", "scope") if name in challenge})
    url = f"{challenge.get('realm', '')}?{query}"
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"{url} is not a valid address for tokens")
    try:
        with urllib.request.urlopen(url, timeout=_ANSWERS_WITHIN) as reply:
            given = json.load(reply)
    except urllib.error.HTTPError as error:
        with error:
            return ""
    return str(given.get("token") or given.get("access_token") or "") if isinstance(given, dict) else ""
