"""The arguments of `lookalike listing`, and the specifications that they make."""

import pytest

from pipelines.client.deployment import listing_settings
from pipelines.specifications import drafts
from pipelines.specifications.pipeline_specs import SHIPPED_SPECS
from tests.command import Command


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((), "name buckets or lists, or one of --now and --off"),
        (("s3://bucket", "--off"), "name buckets or lists, or one of --now and --off"),
        (("https://example.org/photos/",), "is neither a bucket (s3://, gs://, az://) nor a list"),
        (("s3://bucket/two words",), "has a space: write it as %20"),
        (("https://example.org/a.txt", "--secret", "x"), "only buckets have credentials"),
        (("s3://bucket", "--secret", "x", "--public"), "a public bucket is asked without a secret"),
    ],
)
def test_arguments_that_say_nothing_are_refused(command: Command, arguments: tuple[str, ...], text: str) -> None:
    done = command.run("listing", *arguments)
    assert done.returncode == 2
    assert text in " ".join(done.stderr.replace("│", " ").split())


def test_the_settings_go_into_both_specifications() -> None:
    found = {each.name: each for each in drafts.find([SHIPPED_SPECS / "listing"])}
    urls = ["s3://bucket/a", "az://other", "https://example.org/list.txt"]
    patches = listing_settings.patches(urls, "0 3 * * *", "keys", False, 8, "https://minio", "10.0.0.0/8")
    listing, fetch = (found[name].patched(patch) for name, patch in patches.items())
    assert listing.get("input", "cron") == {"name": "tick", "spec": "0 3 * * *", "overwrite": True}
    env = listing.get("transform", "env")
    assert (env["SOURCES"], env["BUCKETS"], env["FETCH_FROM"]) == (" ".join(urls), "8", "10.0.0.0/8")
    keys = [each["key"] for each in listing.get("transform", "secrets")]
    assert keys == [
        *("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY"),
        *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
    ]
    assert fetch.get("transform", "secrets") == listing.get("transform", "secrets")
    assert "SOURCES" not in fetch.get("transform", "env")
    public = listing_settings.patches(["gs://bucket"], "0 * * * *", "", True, 8, "", "")["fetch"]
    assert found["fetch"].patched(public).get("transform", "env").keys() == {"LOOKALIKE_STAGE", "GOOGLE_SKIP_SIGNATURE"}
