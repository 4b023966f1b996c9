"""The buckets that the pipelines list, and the settings of that: given by a command, and kept by later deployments."""

from collections.abc import Sequence
from typing import Any

from google.protobuf import json_format

from pipelines.specifications.drafts import SpecDraft, SpecPatch
from stages.files.public_addresses import FETCH_FROM
from stages.record.url_records import is_store

LISTING, FETCH = "listing", "fetch"
"""The pipelines."""

_SOURCES = "SOURCES"
_UNSIGNED = {"s3": "AWS_SKIP_SIGNATURE", "gs": "GOOGLE_SKIP_SIGNATURE", "az": "AZURE_SKIP_SIGNATURE"}
_KEPT = (_SOURCES, "BUCKETS", "AWS_ENDPOINT_URL", FETCH_FROM, *_UNSIGNED.values())
_KEYS = {
    "s3": ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    "gs": ("GOOGLE_SERVICE_ACCOUNT_KEY",),
    "az": ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY"),
}
"""The variables with the credentials of a provider, which are keys of the secret."""


def patches(
    sources: Sequence[str], every: str, secret: str, public: bool, buckets: int, endpoint: str, networks: str
) -> dict[str, SpecPatch]:
    """The merge patches for both pipelines. every: the schedule, as cron writes it. secret: the name of the secret with
    the credentials, "" for none. public: whether the buckets are asked without any. endpoint, networks: "" for none."""
    schemes = sorted({each.partition(":")[0].lower() for each in sources if is_store(each)})
    keys = [{"name": secret, "env_var": key, "key": key} for each in schemes for key in _KEYS[each]] if secret else []
    env: dict[str, str | None] = {"AWS_ENDPOINT_URL": endpoint or None, FETCH_FROM: networks or None}
    env |= {variable: "true" if public and each in schemes else None for each, variable in _UNSIGNED.items()}
    stated = {**env, _SOURCES: " ".join(sources), "BUCKETS": str(buckets)}
    return {
        LISTING: SpecPatch({"input": {"cron": {"spec": every}}, "transform": {"secrets": keys, "env": stated}}),
        FETCH: SpecPatch({"transform": {"secrets": keys, "env": env}}),
    }


def with_running_values(draft: SpecDraft, info: Any) -> SpecDraft:
    """The specification of one of the pipelines with what the one that runs has been given, unless it states sources or
    secrets itself."""
    if draft.get("transform", "env", default={}).get(_SOURCES) or draft.get("transform", "secrets", default=()):
        return draft
    running = info.details
    secrets = [json_format.MessageToDict(each, preserving_proto_field_name=True) for each in running.transform.secrets]
    env = {name: running.transform.env[name] for name in _KEPT if running.transform.env.get(name)}
    patch: dict[str, Any] = {"transform": {"secrets": secrets, "env": env} if secrets else {"env": env}}
    if draft.name == LISTING:
        patch["input"] = {"cron": {"spec": running.input.cron.spec}}
    return draft.patched(SpecPatch(patch))
