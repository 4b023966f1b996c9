"""Pushing a backbone: made in another process, written in one commit, and not written again."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from python_pachyderm import Client

from pipelines.client.backbones import REPO, current_backbone, push_command
from pipelines.client.deployment.deployment import deploy
from pipelines.client.deployment.image_sizes import IMAGE_SIZE
from pipelines.client.repository import DeleteFile, Repository
from pipelines.client.server.connection import Connection
from pipelines.errors import LookalikeError
from pipelines.library.backbone_push import PushOutcome, make, push, put
from pipelines.specifications import pipeline_specs
from stages.backbone.backbone_spec import (
    MODEL_FILE,
    SCALE_FILE,
    SPEC_FILE,
    TEXT_FILE,
    BackboneSpec,
    WeightsOrigin,
    format_spec,
)
from stages.quality import distance_scale
from tests import fake_gpus
from tests.servers import Unique

pytestmark = pytest.mark.late_alone

SPEC = BackboneSpec("small", 32, "avg", 4, 32, "float32", WeightsOrigin("a test", "0" * 64), "1" * 64)


@pytest.fixture
def repo(client: Client, unique: Unique) -> Repository:
    """An empty repo such as `models`."""
    name = unique("models")
    client.create_repo(name)
    return Repository(Connection(client, "grpc://the-server", "default"), name)


def specified(size: int) -> pipeline_specs.PipelineSpec:
    """The specification of preprocess for another size."""
    (spec,) = (each for each in pipeline_specs.load() if each.name == "preprocess")
    transform = spec.document["transform"]
    env = {**transform["env"], IMAGE_SIZE: str(size)}
    return replace(spec, document={**spec.document, "transform": {**transform, "env": env}})


def write(directory: Path, spec: BackboneSpec, model: bytes) -> Path:
    """A directory with a backbone's files, as `make` leaves it."""
    directory.mkdir()
    (directory / MODEL_FILE).write_bytes(model)
    (directory / SPEC_FILE).write_text(format_spec(spec))
    (directory / SCALE_FILE).write_text(json.dumps({"model": spec.sha256}))
    return directory


def head(client: Client, repo: Repository) -> str:
    """The id of the commit at the head of master."""
    return str(client.inspect_branch(repo.name, "master").head.id)


def commits(client: Client, repo: Repository) -> int:
    """The number of commits with files."""
    return sum(1 for info in client.list_commit(repo.name) if info.details.size_bytes or info.size_bytes_upper_bound)


def test_the_files_are_put_in_one_commit_and_only_once(client: Client, repo: Repository, tmp_path: Path) -> None:
    made = write(tmp_path / "made", SPEC, b"the model" * 500_000)  # several messages long
    first = put(repo, SPEC, made)
    assert (first.spec, first.replaced, first.commit) == (SPEC, None, head(client, repo))
    assert repo.read(f"/{MODEL_FILE}") == (made / MODEL_FILE).read_bytes()
    assert repo.read(f"/{SPEC_FILE}") == (made / SPEC_FILE).read_bytes()
    assert repo.read(f"/{SCALE_FILE}") == (made / SCALE_FILE).read_bytes()
    assert commits(client, repo) == 1

    assert put(repo, SPEC, made) == PushOutcome(SPEC, None, "")
    renamed = replace(SPEC, name="the same by another name")
    assert put(repo, renamed, write(tmp_path / "renamed", renamed, b"the model" * 500_000)) == PushOutcome(
        SPEC, None, ""
    )
    assert (commits(client, repo), head(client, repo)) == (1, first.commit)


def test_a_backbone_of_before_there_were_scales_gets_its_own(client: Client, repo: Repository, tmp_path: Path) -> None:
    made = write(tmp_path / "made", SPEC, b"model")
    put(repo, SPEC, made)
    repo.write([DeleteFile(f"/{SCALE_FILE}")])
    pushed = put(repo, SPEC, made)
    assert pushed == PushOutcome(SPEC, None, head(client, repo), added=("its scale of distances",))
    assert repo.read(f"/{SCALE_FILE}") == (made / SCALE_FILE).read_bytes()
    assert put(repo, SPEC, made).commit == ""


def test_a_text_tower_stays_with_its_model_alone_and_another_model_replaces_both(
    client: Client, repo: Repository, tmp_path: Path
) -> None:
    with_words = write(tmp_path / "one", SPEC, b"one")
    (with_words / TEXT_FILE).write_bytes(b"words")
    assert put(repo, SPEC, with_words).added == ()
    assert repo.read(f"/{TEXT_FILE}") == b"words"
    assert put(repo, SPEC, with_words) == PushOutcome(SPEC, None, "")
    assert put(repo, SPEC, write(tmp_path / "bare", SPEC, b"one")) == PushOutcome(SPEC, None, "")  # keeps them

    (with_words / TEXT_FILE).write_bytes(b"other words")
    replaced = put(repo, SPEC, with_words)
    assert replaced == PushOutcome(SPEC, None, head(client, repo), added=("its text tower",))
    assert repo.read(f"/{TEXT_FILE}") == b"other words"

    other = replace(SPEC, name="other", sha256="2" * 64)
    pushed = put(repo, other, write(tmp_path / "two", other, b"two"))
    assert pushed == PushOutcome(other, SPEC, head(client, repo), wordless=True)
    assert (repo.read(f"/{MODEL_FILE}"), commits(client, repo)) == (b"two", 3)
    assert not repo.exists(f"/{TEXT_FILE}")
    assert not put(repo, SPEC, write(tmp_path / "again", SPEC, b"one")).wordless


@pytest.mark.parametrize(
    "held", [{MODEL_FILE: b"by hand"}, {SPEC_FILE: b"{}"}, {SPEC_FILE: format_spec(SPEC).encode(), MODEL_FILE: b"else"}]
)
def test_manual_changes_are_corrected(client: Client, repo: Repository, tmp_path: Path, held: dict[str, bytes]) -> None:
    for name, content in held.items():
        client.put_file_bytes((repo.name, "master"), f"/{name}", content)
    assert put(repo, SPEC, write(tmp_path / "made", SPEC, b"model")).commit == head(client, repo)
    assert (repo.read(f"/{MODEL_FILE}"), repo.read(f"/{SPEC_FILE}")) == (b"model", format_spec(SPEC).encode())


@pytest.mark.only_in_all
def test_a_push_makes_the_backbone_in_a_process_of_its_own_for_the_size_of_the_library(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deploy(connection, [specified(32)])
    connection.client.create_repo(REPO, project_name=connection.project)
    repo = Repository(connection, REPO)
    (tmp_path / "stages").mkdir()  # a user's folder that is named like our package
    (tmp_path / "stages" / "zoo.py").write_text("raise SystemExit('the wrong one')")
    monkeypatch.chdir(tmp_path)
    for name, value in fake_gpus.variables(tmp_path / "log").items():
        monkeypatch.setenv(name, value)
    pushed = push(connection, "efficientnet-lite0", precision="mixed_float16")
    (head,) = connection.client.list_branch(REPO, project_name=connection.project)
    assert (pushed.spec.name, pushed.spec.image_size, pushed.commit) == ("efficientnet-lite0", 32, head.head.id)
    assert (
        push_command(pushed.spec) == "lookalike model push efficientnet-lite0 --image-size 32 --precision mixed_float16"
    )
    assert current_backbone(repo) == pushed.spec
    assert distance_scale.read(repo.read(f"/{SCALE_FILE}"), pushed.spec.sha256) is not None
    assert pushed.spec.precision == "float16+float32"
    assert re.fullmatch(
        r"\d\d\.\d% of the 3 nearest of \d{3} reference pictures are the same as in float32; "
        r"vectors differ by up to \d+\.\d\d%",
        pushed.change,
    )
    assert (tmp_path / "log").read_text() == "0 GPU\n", "it used a GPU that the server leases to workers"


@pytest.mark.only_in_all
def test_without_a_network_the_alternatives_to_resnet50_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))  # without a copy from an earlier download
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")  # nothing is listening there
    with pytest.raises(LookalikeError, match="^the weights of resnet50 cannot be downloaded") as caught:
        make("resnet50", [], tmp_path)
    assert "lookalike model push resnet50 --weights resnet50_weights" in str(caught.value)
    assert "lookalike model push efficientnet-lite0" in str(caught.value)
