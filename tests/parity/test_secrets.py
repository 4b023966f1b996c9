"""Secrets: kept, listed without their values, and given to pipelines as variables and files."""

from typing import Protocol

import grpc
import pytest
from python_pachyderm import Client
from python_pachyderm.proto.v2.pps import pps_pb2

from tests.parity.places import UNKNOWN, MakeInput, Place, Refusal, content
from tests.servers import Unique


class MakeSecret(Protocol):
    """Makes a secret and returns its name. `a_b` is the key a.b."""

    def __call__(self, **data: str | bytes) -> str: ...


@pytest.fixture
def secret(client: Client, unique: Unique) -> MakeSecret:
    """See MakeSecret."""

    def create(**data: str | bytes) -> str:
        name = unique("secret")
        client.create_secret(name, {key.replace("_", "."): value for key, value in data.items()})
        return name

    return create


def _uses(*mounts: dict[str, str]) -> pps_pb2.Transform:
    return pps_pb2.Transform(secrets=[pps_pb2.SecretMount(**mount) for mount in mounts])


def test_a_secret_is_shown_without_its_values(client: Client, secret: MakeSecret) -> None:
    name = secret(key="value")
    info = client.inspect_secret(name)
    assert (info.secret.name, info.type) == (name, "Opaque")
    assert info.creation_timestamp.seconds > 0
    assert name in [each.secret.name for each in client.list_secret()]


def test_a_name_cannot_be_taken_twice(client: Client, secret: MakeSecret, refusal: Refusal) -> None:
    name = secret(key="value")
    code, text = refusal(client.create_secret, name, {"key": "other"})
    assert code is UNKNOWN
    assert text == f'failed to create secret: secrets "{name}" already exists'


def test_missing_secrets(client: Client, refusal: Refusal) -> None:
    assert refusal(client.inspect_secret, "ghost") == (UNKNOWN, 'failed to get secret: secrets "ghost" not found')
    assert refusal(client.delete_secret, "ghost") == (UNKNOWN, 'failed to delete secret: secrets "ghost" not found')


@pytest.mark.parametrize("name", ["", "Upper", "under_score", "-dash", "../up", "a" * 254])
def test_names_follow_the_rules_of_kubernetes(client: Client, refusal: Refusal, name: str) -> None:
    code, text = refusal(client.create_secret, name, {"key": "value"})
    assert code is UNKNOWN
    assert text.startswith(f'failed to create secret: Secret "{name}" is invalid: metadata.name: ')


def test_variables(place: Place, pfs: MakeInput, secret: MakeSecret) -> None:
    repo, name = place.repo(), secret(user="alice", token=b"a b'\"$c\n")
    both = _uses({"name": name, "key": "user", "env_var": "WHO"}, {"name": name, "key": "token", "env_var": "TOKEN"})
    made = place.pipeline('printf "%s" "$WHO:$TOKEN" > /pfs/out/said', transform=both, input=pfs(repo))
    place.job(made, place.put(repo, a="1"))
    assert place.read(made, "/said") == "alice:a b'\"$c\n"


def test_files(place: Place, pfs: MakeInput, secret: MakeSecret) -> None:
    repo, name = place.repo(), secret(user="alice", ca_pem=b"\x00\xff\n")
    mounted = _uses({"name": name, "mount_path": "/var/lookalike-test/secret"})
    script = "cd /var/lookalike-test/secret; cp user /pfs/out/; ls > /pfs/out/names; cp ca.pem /pfs/out/pem"
    made = place.pipeline(script, transform=mounted, input=pfs(repo))
    place.job(made, place.put(repo, a="1"))
    assert place.read(made, "/user") == "alice"
    assert place.read(made, "/names") == "ca.pem\nuser\n"
    assert content(place.client, (made, "master"), "/pem") == b"\x00\xff\n"


@pytest.mark.only_localpachd("Pachyderm names a volume after its secret, and Kubernetes refuses two of one name")
def test_files_of_one_secret_at_two_places(place: Place, pfs: MakeInput, secret: MakeSecret) -> None:
    repo, name = place.repo(), secret(user="alice")
    mounted = _uses({"name": name, "mount_path": "/var/lookalike-test/secret"}, {"name": name, "mount_path": "/mnt"})
    script = "cat /mnt/user /var/lookalike-test/secret/user > /pfs/out/users"
    made = place.pipeline(script, transform=mounted, input=pfs(repo))
    place.job(made, place.put(repo, a="1"))
    assert place.read(made, "/users") == "alicealice"


def test_the_secrets_of_a_pipeline_must_exist(
    place: Place, pfs: MakeInput, client: Client, secret: MakeSecret, refusal: Refusal
) -> None:
    repo, name, made = place.repo(), secret(key="value"), place.unique("p")

    def create(**mount: str) -> tuple[grpc.StatusCode, str]:
        transform = _uses(mount)
        transform.MergeFrom(pps_pb2.Transform(cmd=["true"]))
        return refusal(client.create_pipeline, made, transform=transform, input=pfs(repo))

    assert create(name=name, env_var="E") == (UNKNOWN, f"secret {name} has env_var set but is missing key")
    assert create(name="ghost", mount_path="/s") == (UNKNOWN, "missing Kubernetes secret ghost")
    assert create(name=name, env_var="E", key="other") == (UNKNOWN, f"Kubernetes secret {name} missing key other")
