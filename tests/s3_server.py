"""An S3 server with Amazon's behaviour (moto), in a process of its own."""

import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import boto3
import pytest

_PROGRAM = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""


@dataclass
class S3Server:
    """The server. client: with the rights of its owner."""

    url: str
    client: Any

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
def serving() -> Iterator[S3Server]:
    """An empty server, which the variables of Amazon's tools name meanwhile."""
    with subprocess.Popen([sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        url = f"http://127.0.0.1:{int(process.stdout.readline())}"
        variables = {
            "AWS_ENDPOINT_URL": url,
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        with pytest.MonkeyPatch.context() as patch:
            for name in [each for each in os.environ if each.startswith("AWS_")]:
                patch.delenv(name)
            for name, value in variables.items():
                patch.setenv(name, value)
            yield S3Server(url, boto3.client("s3"))
        process.stdin.close()
