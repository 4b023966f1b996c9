"""Secrets: kept, listed without their values, and given to pipelines as variables and files."""

import grpc
import pytest
from python_pachyderm.proto.v2.pps import pps_pb2

UNKNOWN = grpc.StatusCode.UNKNOWN


@pytest.fixture
def secret(client, unique):
    """Makes secrets and returns their names; they are gone after the test."""
    made = []

    def create(**data: str | bytes) -> str:
        name = unique("secret")
        client.create_secret(name, {key.replace("_", "."): value for key, value in data.items()})
        made.append(name)
        return name

    yield create
    for name in made:
        client.delete_secret(name)


def _uses(*mounts) -> pps_pb2.Transform:
    return pps_pb2.Transform(secrets=[pps_pb2.SecretMount(**mount) for mount in mounts])


def _refusal(call, *arguments, **fields) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.RpcError) as refused:
        call(*arguments, **fields)
    return refused.value.code(), refused.value.details()


def test_a_secret_is_shown_without_its_values(client, secret) -> None:
    name = secret(key="value")
    info = client.inspect_secret(name)
    assert (info.secret.name, info.type) == (name, "Opaque")
    assert info.creation_timestamp.seconds > 0
    assert name in [each.secret.name for each in client.list_secret()]


def test_a_name_is_taken_once(client, secret) -> None:
    name = secret(key="value")
    code, text = _refusal(client.create_secret, name, {"key": "other"})
    assert code is UNKNOWN
    assert text == f'failed to create secret: secrets "{name}" already exists'


def test_secrets_that_are_not_there(client) -> None:
    assert _refusal(client.inspect_secret, "ghost") == (UNKNOWN, 'failed to get secret: secrets "ghost" not found')
    assert _refusal(client.delete_secret, "ghost") == (UNKNOWN, 'failed to delete secret: secrets "ghost" not found')


@pytest.mark.parametrize("name", ["", "Upper", "under_score", "-dash", "../up", "a" * 254])
def test_names_are_kubernetes(client, name) -> None:
    code, text = _refusal(client.create_secret, name, {"key": "value"})
    assert code is UNKNOWN
    assert text.startswith(f'failed to create secret: Secret "{name}" is invalid: metadata.name: ')


def test_variables(place, pfs, secret) -> None:
    repo, name = place.repo(), secret(user="alice", token=b"a b'\"$c\n")
    both = _uses({"name": name, "key": "user", "env_var": "WHO"}, {"name": name, "key": "token", "env_var": "TOKEN"})
    made = place.pipeline('printf "%s" "$WHO:$TOKEN" > /pfs/out/said', transform=both, input=pfs(repo))
    place.job(made, place.put(repo, a="1"))
    assert place.read(made, "/said") == "alice:a b'\"$c\n"


def test_files(place, pfs, secret) -> None:
    repo, name = place.repo(), secret(user="alice", ca_pem=b"\x00\xff\n")
    mounted = _uses({"name": name, "mount_path": "/var/lookalike-test/secret"}, {"name": name, "mount_path": "/mnt"})
    script = "cat /mnt/user > /pfs/out/user; cd /var/lookalike-test/secret; ls > /pfs/out/names; cp ca.pem /pfs/out/pem"
    made = place.pipeline(script, transform=mounted, input=pfs(repo))
    place.job(made, place.put(repo, a="1"))
    assert place.read(made, "/user") == "alice"
    assert place.read(made, "/names") == "ca.pem\nuser\n"
    with place.client.get_file((made, "master"), "/pem") as file:
        assert file.read() == b"\x00\xff\n"


def test_what_a_pipeline_wants_must_be_there(place, pfs, client, secret) -> None:
    repo, name, made = place.repo(), secret(key="value"), place.unique("p")

    def create(**mount) -> tuple[grpc.StatusCode, str]:
        transform = _uses(mount)
        transform.MergeFrom(pps_pb2.Transform(cmd=["true"]))
        return _refusal(client.create_pipeline, made, transform=transform, input=pfs(repo))

    assert create(name=name, env_var="E") == (UNKNOWN, f"secret {name} has env_var set but is missing key")
    assert create(name="ghost", mount_path="/s") == (UNKNOWN, "missing Kubernetes secret ghost")
    assert create(name=name, env_var="E", key="other") == (UNKNOWN, f"Kubernetes secret {name} missing key other")
