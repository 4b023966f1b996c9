"""Secrets of pipelines, the token and the server's own credentials: in no log, result, commit or error. For
dumps see tests/parity/test_debug.py."""

from __future__ import annotations

import base64
from pathlib import Path

import grpc
import pytest
from python_pachyderm import Client
from python_pachyderm.proto.v2.pps import pps_pb2

from tests.servers import Localpachd, StartPachd

TOKEN, WORD, KEY = "the-token-of-the-server-0123456789", "open sesame, said the secret", "the key of a bucket"
SECRETS = [form for each in (TOKEN, WORD, KEY) for form in (each.encode(), base64.b64encode(each.encode()))]


@pytest.fixture
def server(start_pachd: StartPachd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Localpachd:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEY)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    (tmp_path / "token").write_text(TOKEN)
    return start_pachd(tmp_path / "root", "--token-file", str(tmp_path / "token"))


def pipeline(client: Client, name: str, script: str) -> pps_pb2.JobInfo:
    uses = [pps_pb2.SecretMount(name="kept", key="word", env_var="WORD")]
    client.create_pipeline(
        name,
        transform=pps_pb2.Transform(cmd=["sh", "-e"], stdin=[script], secrets=uses),
        input=pps_pb2.Input(pfs=pps_pb2.PFSInput(repo="in", glob="/")),
        datum_tries=1,
    )
    newest = next(iter(client.list_job(pipeline_name=name))).job.id
    (job,) = client.inspect_job(newest, pipeline_name=name, wait=True)
    return job


def held(data: bytes) -> list[bytes]:
    return [each for each in SECRETS if each in data]


def test_they_are_nowhere_but_in_their_own_files(server: Localpachd, tmp_path: Path) -> None:
    port = int(server.address.rpartition(":")[2])
    client = Client(port=port, auth_token=TOKEN)
    client.create_secret("kept", {"word": WORD})
    client.create_repo("in")
    client.put_file_bytes(("in", "master"), "/f", b"x")
    good = pipeline(client, "good", 'test "$WORD" && cp /pfs/.env /pfs/out/env')
    bad = pipeline(client, "bad", 'test "$WORD"; test -z "$WORD"')
    assert (good.state, bad.state) == (pps_pb2.JOB_SUCCESS, pps_pb2.JOB_FAILURE)
    errors = [bad.reason, str(good), str(bad)]
    for call in (
        lambda: client.put_file_url(("in", "master"), "/x", "s3://bucket/x"),
        lambda: client.create_secret("kept", {"word": WORD}),
        lambda: list(Client(port=port, auth_token=TOKEN[:-1]).list_repo()),
    ):
        with pytest.raises((grpc.RpcError, ConnectionError)) as info:
            call()
        errors.append(str(info.value))
    answers = [str(client.inspect_secret("kept")), str(list(client.list_secret())), *errors]
    answers += [str(each) for name in ("good", "bad") for each in client.inspect_pipeline(name, details=True)]
    answers += [each.message for name in ("good", "bad") for each in client.get_pipeline_logs(name)]
    assert [each for each in answers if held(each.encode())] == []
    assert client.get_file(("good", "master"), "/env").read()
    server.stop()
    files = [path for path in (tmp_path / "root").rglob("*") if path.is_file()]
    assert {path.parent.name for path in files if held(path.read_bytes())} == {"secrets"}
    assert held((tmp_path / "root.log").read_bytes()) == []
