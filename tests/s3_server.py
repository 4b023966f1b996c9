"""An S3 server with Amazon's behaviour (moto), in a process of its own on a free port of this machine."""

import os
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import boto3
import pytest
from obstore.store import S3Store

KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}

PAGE = 20
"""Most keys of a page of a listing; Amazon has 1,000."""

_REGION = "us-east-1"
_PLACE = re.compile(r"Running on (http://127\.0\.0\.1:\d+)")


@dataclass(frozen=True)
class S3Server:
    """url: its endpoint."""

    url: str

    @cached_property
    def client(self) -> Any:
        """Amazon's own, with the rights of the owner."""
        keys = {name.lower(): value for name, value in KEYS.items()}
        return boto3.client("s3", endpoint_url=self.url, region_name=_REGION, **keys)

    def bucket(self, name: str) -> Any:
        """A new bucket, for obstore."""
        self.client.create_bucket(Bucket=name)
        return S3Store(
            name,
            config={"endpoint": self.url, "region": _REGION, "access_key_id": "key", "secret_access_key": "secret"},
            client_options={"allow_http": True},
        )

    def put(self, bucket: str, objects: dict[str, bytes]) -> None:
        """Puts objects into a bucket, which is made if it is missing."""
        if bucket not in [each["Name"] for each in self.client.list_buckets()["Buckets"]]:
            self.client.create_bucket(Bucket=bucket)
        for key, content in objects.items():
            self.client.put_object(Bucket=bucket, Key=key, Body=content)

    def put_in_parts(self, bucket: str, key: str, parts: list[bytes]) -> str:
        """Puts an object by a multipart upload; its ETag."""
        where = {"Bucket": bucket, "Key": key}
        upload = self.client.create_multipart_upload(**where)["UploadId"]
        tags = [
            self.client.upload_part(**where, UploadId=upload, PartNumber=number, Body=part)["ETag"]
            for number, part in enumerate(parts, 1)
        ]
        listed = [{"ETag": tag, "PartNumber": number} for number, tag in enumerate(tags, 1)]
        done = self.client.complete_multipart_upload(**where, UploadId=upload, MultipartUpload={"Parts": listed})
        return str(done["ETag"])

    def require_rights(self, required: bool) -> None:
        """Whether requests need a key that has rights. The ones of these tests have none."""
        body = b"0" if required else b"inf"
        kind = {"Content-Type": "text/plain"}
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/moto-api/reset-auth", body, kind)).close()


@contextmanager
def s3_server(port: int = 0) -> Iterator[S3Server]:
    """A server without buckets; it ends with the `with` statement."""
    command = [sys.executable, "-P", "-u", "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    variables = {**os.environ, "MOTO_S3_DEFAULT_MAX_KEYS": str(PAGE)}
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env=variables)
    try:
        assert process.stderr is not None
        found = next(found for line in process.stderr if (found := _PLACE.search(line)))
        log = process.stderr  # which would fill the pipe
        threading.Thread(target=log.read, daemon=True).start()
        yield S3Server(found[1])
    finally:
        process.kill()
        process.wait()


@contextmanager
def named_s3_server() -> Iterator[S3Server]:
    """The same, which the variables of Amazon's tools name meanwhile."""
    with s3_server() as server, pytest.MonkeyPatch.context() as patch:
        for name in [each for each in os.environ if each.startswith("AWS_")]:
            patch.delenv(name)
        for name, value in {**KEYS, "AWS_ENDPOINT_URL": server.url, "AWS_DEFAULT_REGION": _REGION}.items():
            patch.setenv(name, value)
        yield server
