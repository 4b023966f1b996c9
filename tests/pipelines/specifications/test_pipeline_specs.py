"""The specifications that ship with lookalike, and the messages about invalid ones."""

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.client.services import service_roles
from pipelines.client.services.service_roles import ServiceRole
from pipelines.errors import LookalikeError
from pipelines.specifications import optional_specs, pipeline_specs
from pipelines.specifications.pipeline_specs import SHIPPED_SPECS, PipelineSpec, leaves
from stages.serving.follow import configuration

SPECS = {spec.path.stem: spec for spec in map(pipeline_specs.read, optional_specs.files(SHIPPED_SPECS))}
BATCHED = [stem for stem, spec in SPECS.items() if "service" not in spec.document]
"""Those of which one process computes many datums."""

STAGES = SHIPPED_SPECS.parent / "stages"


def stage_of(spec: PipelineSpec) -> str:
    """The stage that a specification's command runs."""
    command = list(spec.request().transform.cmd)
    assert command[:2] == ["python3", "-m"]
    package, _, stage = command[2].partition(".")
    assert package == "stages"
    return str(stage)


SELDOM = {"neighbours", "evaluate", "listing", "fetch"}
"""Pipelines without a GPU that leave their memory to others between jobs."""


@pytest.mark.parametrize("stem", SPECS)
class TestEverySpec:
    def test_file_pipeline_and_stage_share_a_stem(self, stem: str) -> None:
        spec = SPECS[stem]
        assert spec.name == stem
        stage = stage_of(spec)
        name = stage.replace("_", "-")
        assert stem == name or stem.startswith(f"{name}-")
        module = importlib.import_module(f"stages.{stage}")
        assert callable(module.start) if stem in BATCHED else module.PROGRAM.name == name

    def test_its_version_names_its_stage(self, stem: str) -> None:
        stage = stage_of(SPECS[stem])
        named, _, version = SPECS[stem].request().transform.env["LOOKALIKE_STAGE"].rpartition("-")
        assert named == stage.replace("_", "-")
        if stem in BATCHED:
            assert int(version) == importlib.import_module(f"stages.{stage}").VERSION
        assert int(version) >= 1

    def test_it_requests_resources(self, stem: str) -> None:
        """GPUs in the limits alone, as Kubernetes requires; limits alone would leave the requests of CPU and memory at
        0."""
        request = SPECS[stem].request()
        assert request.resource_requests.cpu > 0
        assert request.resource_requests.memory
        assert not request.resource_requests.HasField("gpu")
        gpu = stage_of(SPECS[stem]) in ("features", "index", "search", "train")
        assert request.resource_limits.HasField("gpu") == gpu
        assert request.autoscaling == (gpu or stem in SELDOM)
        if gpu:
            assert (request.resource_limits.gpu.type, request.resource_limits.gpu.number) == ("nvidia.com/gpu", 1)

    def test_it_has_a_description_and_its_image_a_version(self, stem: str) -> None:
        request = SPECS[stem].request()
        assert request.description
        name, _, tag = request.transform.image.partition(":")
        assert name.startswith("lookalike-")
        assert tag not in ("", "latest")

    def test_the_file_is_formatted_like_the_output_of_json_tools(self, stem: str) -> None:
        text = SPECS[stem].path.read_text()
        assert text == json.dumps(json.loads(text), indent=2) + "\n"


@pytest.mark.parametrize("stem", BATCHED)
class TestEveryBatchedSpec:
    def test_a_process_serves_a_whole_datum_set(self, stem: str) -> None:
        request = SPECS[stem].request()
        assert request.transform.datum_batching
        sets = request.datum_set_spec
        assert sets.number or sets.size_bytes or sets.per_worker  # an empty one makes the worker divide by zero

    def test_its_stage_accepts_its_parameters(self, stem: str) -> None:
        spec = SPECS[stem]
        importlib.import_module(f"stages.{stage_of(spec)}").start(dict(spec.request().transform.env))


@pytest.mark.parametrize("role", service_roles.ROLES.values(), ids=lambda role: role.pipeline)
def test_a_service_is_one_process_that_can_read_its_files_again(role: ServiceRole) -> None:
    """Its port is one that nodes may open; Pachyderm does not scale services down."""
    assert SPECS.keys() - set(BATCHED) == service_roles.ROLES.keys()
    request = SPECS[role.pipeline].request()
    assert (request.transform.datum_batching, request.autoscaling) == (False, False)
    assert request.parallelism_spec.constant == 1
    assert {(leaf.glob, leaf.lazy) for leaf in pipeline_specs.leaves(request.input)} == {("/", False)}
    program = importlib.import_module(f"stages.{stage_of(SPECS[role.pipeline])}").PROGRAM
    assert request.service.internal_port == program.port
    assert request.service.external_port == role.port
    assert 30000 <= role.port <= 32767
    (secret,) = request.transform.secrets
    assert (secret.name, Path(secret.mount_path)) == (role.secret, program.secrets)
    assert role.mounted == program.secrets


def test_the_service_of_searches_is_the_one_that_is_configured_by_default() -> None:
    assert (service_roles.SEARCH.port, service_roles.SEARCH.mounted) == (configuration.PORT, configuration.SECRETS)


def test_every_stage_has_a_spec() -> None:
    runnable = {path.stem for path in STAGES.glob("*.py") if 'contract.run("stages.' in path.read_text()}
    # The last ones are the command's.
    assert runnable == {stage_of(SPECS[stem]) for stem in BATCHED} | {
        "compare",
        "label_vectors",
        "layout",
        "promotion",
    }


def environment(stem: str) -> dict[str, str]:
    return dict(SPECS[stem].request().transform.env)


def test_parameters_that_must_agree_do() -> None:
    assert environment("search")["K"] == environment("render")["K"]
    for name in ("METRIC", "BACKEND"):
        assert environment("search")[name] == environment("index")[name]
    assert environment("search")["METRIC"] == environment("neighbours")["METRIC"]
    for stage in ("preprocess", "features"):
        assert environment(stage) == environment(f"{stage}-queries")


def test_variants_differ_only_in_their_inputs_and_workers() -> None:
    """A library is put at once, and entries are asked one by one."""
    for stage in ("preprocess", "features"):
        one, other = (dict(SPECS[stem].document) for stem in (stage, f"{stage}-queries"))
        for each in (one, other):
            for field in ("pipeline", "input", "description", "parallelism_spec"):
                each.pop(field)
        assert one == other


def test_the_expensive_input_comes_first_and_shared_inputs_are_lazy() -> None:
    """Pachyderm loops over the members in the order of their names, the last varying fastest."""
    for stem, expensive, shared in (
        ("features", "models", ["models"]),
        ("features-queries", "models", ["models"]),
        ("search", "index", ["index", "queries"]),
        ("neighbours", "left", ["left", "right"]),
    ):
        members = list(leaves(SPECS[stem].request().input))
        assert min(members, key=lambda pfs: pfs.name).name == expensive
        assert [pfs.name for pfs in members if pfs.lazy] == shared


def test_they_are_loaded_upstream_first() -> None:
    names = [spec.name for spec in pipeline_specs.ordered(SPECS.values())]
    for spec in SPECS.values():
        for repo in spec.repos & set(names):
            assert names.index(repo) < names.index(spec.name)
    assert set(pipeline_specs.sources(SPECS.values())) <= set(pipeline_specs.SOURCES)


def test_queries_and_library_do_not_share_a_branch_of_provenance() -> None:
    """In one pipeline a query would open a commit in all of the library's."""
    upstream = {spec.name: spec.repos for spec in SPECS.values()}

    def roots(name: str) -> set[str]:
        return set.union(*(roots(repo) for repo in upstream[name])) if name in upstream else {name}

    assert roots("preprocess") == {"images"}
    assert roots("index") == {"images", "masks", "models"}
    assert roots("features-queries") == {"queries", "models"}
    assert roots("render") == {"images", "masks", "queries", "models"}


MINIMAL: dict[str, Any] = {"pipeline": {"name": "p"}, "transform": {"cmd": ["true"]}}


def write(directory: Path, name: str, **fields: Any) -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / name
    path.write_text(json.dumps(MINIMAL | fields))
    return path


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"transfrom": {}}, 'no field named "transfrom"'),
        ({"input": {"pfs": {"repo": "a", "globb": "/"}}}, 'no field named "globb"'),
        ({"autoscaling": "yes"}, "autoscaling"),
        ({"pipeline": {}}, "set pipeline.name"),
        ({"pipeline": "p"}, "pipeline"),
    ],
)
def test_an_unknown_field_is_named_with_its_file(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    path = write(tmp_path / "specs", "p.json", **fields)
    with pytest.raises(LookalikeError) as caught:
        pipeline_specs.load(tmp_path / "specs")
    assert str(path) in str(caught.value)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_invalid_directories(tmp_path: Path) -> None:
    with pytest.raises(LookalikeError, match="is not a directory of specifications"):
        pipeline_specs.load(tmp_path / "gone")
    with pytest.raises(LookalikeError, match="holds no specification"):
        pipeline_specs.load(tmp_path)
    write(tmp_path, "one.json")
    write(tmp_path, "two.json")
    with pytest.raises(LookalikeError, match=r"one\.json and .*two\.json both specify the pipeline p"):
        pipeline_specs.load(tmp_path)


def test_a_cycle_is_refused(tmp_path: Path) -> None:
    for name, reads in (("a", "b"), ("b", "a"), ("c", "images")):
        write(tmp_path, f"{name}.json", pipeline={"name": name}, input={"pfs": {"repo": reads, "glob": "/"}})
    with pytest.raises(LookalikeError, match="cycle: a, b"):
        pipeline_specs.load(tmp_path)


def test_the_fingerprint_depends_on_the_meaning_only(tmp_path: Path) -> None:
    path = write(tmp_path, "p.json", description="d")
    first = pipeline_specs.read(path).fingerprint
    path.write_text(json.dumps(dict(reversed(list(json.loads(path.read_text()).items()))), indent=7))
    assert pipeline_specs.read(path).fingerprint == first
    write(tmp_path, "p.json", description="other")
    assert pipeline_specs.read(path).fingerprint != first
