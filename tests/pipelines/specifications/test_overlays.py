"""Overlays: their changes and order, and the messages about invalid ones."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipelines.checks import pods
from pipelines.cluster import capacity
from pipelines.errors import LookalikeError
from pipelines.specifications import drafts, optional_specs, overlays, pipeline_specs, spec_writer
from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.overlays import Overlay
from speclang import quantities

BASE: dict[str, dict[str, Any]] = {
    "cpu": {"transform": {"image": "lookalike-cpu:1", "cmd": ["true"]}},
    "gpu": {
        "transform": {"image": "lookalike-rapids:1", "cmd": ["true"], "env": {"A": "1", "B": "2"}},
        "resource_limits": {"gpu": {"type": "nvidia.com/gpu", "number": "1"}},
        "tolerations": [{"key": "mine", "operator": "EXISTS"}],
    },
}

Make = Callable[..., Overlay]


@pytest.fixture
def base(tmp_path: Path) -> list[SpecDraft]:
    (tmp_path / "specs").mkdir()
    for name, fields in BASE.items():
        (tmp_path / "specs" / f"{name}.json").write_text(json.dumps({"pipeline": {"name": name}, **fields}, indent=2))
    return drafts.find([tmp_path / "specs"])


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def make(environment: Mapping[str, str] | None = None, name: str = "mine", **members: Any) -> Overlay:
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(members, indent=2))
        return overlays.load(str(path), environment or {})

    return make


def test_patches_apply_to_all_then_to_those_with_gpus_then_to_named_ones(base: list[SpecDraft], make: Make) -> None:
    overlay = make(
        all={"datum_tries": 1, "description": "all", "salt": "s"},
        gpus={"datumTries": 2, "description": "gpus", "tolerations": [{"key": "other", "operator": "EXISTS"}]},
        pipelines={"gpu": {"description": None, "transform": {"env": {"A": None, "C": "3"}}}},
    )
    cpu, gpu = overlays.apply([overlay], base)
    assert cpu.document == {**base[0].document, "datum_tries": 1, "description": "all", "salt": "s"}
    assert gpu.get("datum_tries") == 2
    assert gpu.get("description") is None
    assert gpu.get("transform", "env") == {"B": "2", "C": "3"}
    assert gpu.get("tolerations") == [{"key": "other", "operator": "EXISTS"}]  # a list is replaced as a whole
    assert base[1].get("tolerations") == BASE["gpu"]["tolerations"]


def test_a_patch_that_adds_gpus_makes_the_patch_for_gpus_apply(base: list[SpecDraft], make: Make) -> None:
    gpus = {"gpu": {"type": "nvidia.com/gpu", "number": 1}}
    (cpu, _) = overlays.apply([make(all={"resource_limits": gpus}, gpus={"salt": "gpu"})], base)
    assert cpu.get("salt") == "gpu"


def test_images_are_moved_to_another_registry(base: list[SpecDraft], make: Make) -> None:
    (cpu, gpu) = overlays.apply([make(images={"lookalike-c*": {"registry": "r.io/t/", "tag": "2"}})], base)
    assert cpu.get("transform", "image") == "r.io/t/lookalike-cpu:2"
    assert gpu.get("transform", "image") == "lookalike-rapids:1"
    (cpu, _) = overlays.apply([make(images={"*": {"registry": "r.io"}})], base)
    assert cpu.get("transform", "image") == "r.io/lookalike-cpu:1"


def test_several_are_applied_in_their_order(base: list[SpecDraft], make: Make) -> None:
    one, two = make(name="one", all={"salt": "1", "description": "1"}), make(name="two", all={"salt": "2"})
    assert overlays.apply([one, two], base)[0].get("salt") == "2"
    assert overlays.apply([two, one], base)[0].get("salt") == "1"
    assert overlays.apply([one, two], base)[0].get("description") == "1"


def test_variables_come_from_the_environment(make: Make) -> None:
    members = {
        "all": {"salt": "${SALT:-none}-${TAG}", "transform": {"image": "${IMAGE:-}"}},
        "description": "says what",
    }
    assert make({"TAG": "1"}, **members).all.value == {"salt": "none-1", "transform": {"image": ""}}
    assert make({"TAG": "1", "SALT": "s"}, **members).all.value["salt"] == "s-1"
    with pytest.raises(LookalikeError, match="overlay mine needs TAG=… in the environment: says what"):
        make(**members)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ({"al": {}}, r"json:2: unknown al: did you mean all\?"),
        ({"images": {"x": {"prefix": ""}}}, r"unknown images.x.prefix: an overlay may have registry, tag, name"),
        ({"gpus": []}, r"json:2: gpus must be an object"),
        ({"pipelines": {"gpu": "x"}}, "pipelines.gpu must be an object"),
        ({"images": {"x": "y"}}, "images.x must be an object"),
    ],
)
def test_invalid_overlays_are_reported_with_their_place(make: Make, members: Any, said: str) -> None:
    with pytest.raises(LookalikeError, match=said):
        make(**members)


def test_flaws_in_patches_are_found_where_they_are_written(make: Make, tmp_path: Path) -> None:
    (finding,) = make(gpus={"schedulin_spec": {}}).findings
    assert finding.flaw.field == ("gpus", "schedulin_spec")
    assert finding.flaw.fix == 'did you mean "scheduling_spec"?'
    assert (finding.place.file, finding.place.line) == (tmp_path / "mine.json", 3)


def test_unknown_names(base: list[SpecDraft], make: Make) -> None:
    with pytest.raises(LookalikeError, match=r"unknown overlay ekz: did you mean eks\?"):
        overlays.load("ekz")
    with pytest.raises(LookalikeError, match=r"unknown pipeline gpuu: did you mean gpu\?"):
        overlays.apply([make(pipelines={"gpuu": {}})], base)


def test_a_field_is_placed_where_it_was_written_last(base: list[SpecDraft], make: Make, tmp_path: Path) -> None:
    overlay = make(gpus={"tolerations": [{"key": "k", "operator": "EXISTS"}], "transform": {"env": {"A": "9"}}})
    gpu = overlays.apply([overlay], base)[1]
    mine, file = tmp_path / "mine.json", tmp_path / "specs" / "gpu.json"
    assert (gpu.place(("tolerations", 0, "operator")).file, gpu.place(("tolerations",)).line) == (mine, 3)
    assert gpu.place(("transform", "env", "A")).file == mine
    assert gpu.place(("transform", "env", "B")).file == file
    assert gpu.place(("transform", "cmd")).file == file


class TestThoseThatShip:
    def overlaid(self, *names: str, **environment: str) -> tuple[dict[str, SpecDraft], list[Overlay]]:
        on_top = [overlays.load(name, environment) for name in names]
        return {each.name: each for each in overlays.apply(on_top, drafts.find([pipeline_specs.SHIPPED_SPECS]))}, on_top

    @pytest.mark.parametrize("name", overlays.names())
    def test_each_can_be_sent_and_is_formatted_like_the_output_of_json_tools(self, name: str) -> None:
        found, (overlay,) = self.overlaid(name, REGISTRY="r.io/t")
        assert overlay.description
        assert all(draft.spec().request().pipeline.name == draft.name for draft in found.values())
        text = overlay.path.read_text()
        assert text == json.dumps(json.loads(text), indent=2) + "\n"

    @pytest.mark.parametrize("name", ["cpu", "keras-backend", "train-nightly", "train-on-request", "train-triggered"])
    def test_those_of_opt_in_pipelines_fit_a_directory_without_them(self, name: str) -> None:
        usual = [draft for draft in drafts.find([pipeline_specs.SHIPPED_SPECS]) if not optional_specs.group(draft.path)]
        assert len(overlays.apply([overlays.load(name)], usual)) == len(usual)

    def test_gpu_pipelines_run_on_nodes_with_gpus_and_the_rest_anywhere(self) -> None:
        for name in ("gke", "eks"):
            found, _ = self.overlaid(name)
            for draft in found.values():
                gpu = draft.get("resource_limits") is not None
                assert (draft.get("scheduling_spec", "node_selector") is not None) == gpu
                assert (draft.get("tolerations") is not None) == gpu

    def test_without_gpus_all_workers_fit_on_one_small_machine(self) -> None:
        """As in the guide: of 4 cores and 12 GB Pachyderm needs some itself."""
        found, _ = self.overlaid("cpu")
        values = yaml.safe_load((pipeline_specs.SHIPPED_SPECS.parent / "docs" / "helm" / "kind.yaml").read_text())[
            "pachd"
        ]
        usual = [draft for draft in found.values() if not optional_specs.group(draft.path)]
        asked = [capacity.pod_requests(pods.patched_pod(draft)) for draft in usual]
        assert {name for each in asked for name in each} == {"cpu", "memory"}
        for name, key, most in (("cpu", "CPU", "3"), ("memory", "Memory", "8.5Gi")):
            sidecar, limit = quantities.parse(values[f"defaultSidecar{key}Request"]), quantities.parse(most)
            assert sidecar is not None and limit is not None
            assert sum(each[name] + sidecar for each in asked) <= limit

    def test_large_divides_the_buckets_of_partition_and_changes_nothing_else(self) -> None:
        expected = {
            each.name: json.loads(json.dumps(each.document)) for each in drafts.find([pipeline_specs.SHIPPED_SPECS])
        }
        inputs = expected["partition"]["input"]["join"]
        for each, top in zip(inputs, ("/library", "/thumbnails", "/library"), strict=True):
            each["pfs"] |= {"glob": f"{top}/(*)/(*)", "join_on": "$1-$2"}
        found, _ = self.overlaid("large")
        assert {name: each.document for name, each in found.items()} == expected

    def test_cuda13_gives_the_search_another_image_in_any_registry(self) -> None:
        names = ("registry", "cuda13")
        for order in (names, names[::-1]):
            found, _ = self.overlaid(*order, REGISTRY="r.io/t")
            images = {name: each.get("transform", "image").partition(":")[0] for name, each in found.items()}
            assert images["features"] == "r.io/t/lookalike-tensorflow"
            other = {name for name, image in images.items() if image == "r.io/t/lookalike-rapids-cuda13"}
            assert other == {"index", "search"}

    def test_eci_puts_everything_on_virtual_nodes(self) -> None:
        found, _ = self.overlaid("eci", ECI_SPECS="ecs.gn7i-c8g1.2xlarge")
        for draft in found.values():
            request = draft.spec().request()
            assert dict(request.scheduling_spec.node_selector) == {"type": "virtual-kubelet"}
            assert request.tolerations[0].key == "virtual-kubelet.io/provider"
            used = request.metadata.annotations.get("k8s.aliyun.com/eci-use-specs")
            assert used == ("ecs.gn7i-c8g1.2xlarge" if request.resource_limits.gpu.number else None)

    def test_the_image_cache_has_exactly_the_images_in_use(self) -> None:
        found, on_top = self.overlaid("registry", "pull-secret", "eci", REGISTRY="r.io/t", TAG="7")
        cache = spec_writer.image_cache(on_top, list(found.values()))
        assert cache == {
            "apiVersion": "eci.alibabacloud.com/v1",
            "kind": "ImageCache",
            "metadata": {"name": "lookalike"},
            "spec": {
                "imageCacheSize": 30,
                "images": [f"r.io/t/lookalike-{each}:7" for each in ("cpu", "rapids", "serve", "tensorflow")],
                "imagePullSecrets": ["default:regcred"],
            },
        }
        assert spec_writer.as_yaml(cache).splitlines()[:5] == [
            'apiVersion: "eci.alibabacloud.com/v1"',
            'kind: "ImageCache"',
            "metadata:",
            '  name: "lookalike"',
            "spec:",
        ]
        assert spec_writer.image_cache(on_top[:2], list(found.values())) is None


def test_an_image_cache_needs_a_name(base: list[SpecDraft], make: Make) -> None:
    wrong: list[dict[str, object]] = [{"spec": {}}, {"name": "a", "images": []}]
    for cache in wrong:
        with pytest.raises(LookalikeError, match="image_cache needs a name"):
            spec_writer.image_cache([make(image_cache=cache)], base)


def test_the_written_specifications_are_the_deployed_ones(base: list[SpecDraft], make: Make, tmp_path: Path) -> None:
    overlay = make(all={"datum_tries": 1}, image_cache={"name": "c"})
    changed = overlays.apply([overlay], base)
    written = spec_writer.write(tmp_path / "new" / "out", changed, [overlay])
    assert [path.name for path in written] == ["cpu.json", "gpu.json", "image-cache.yaml"]
    loaded = {spec.name: spec.fingerprint for spec in pipeline_specs.load(tmp_path / "new" / "out")}
    assert loaded == {draft.name: draft.spec().fingerprint for draft in changed}
    with pytest.raises(LookalikeError, match="is one of the specifications read"):
        spec_writer.write(tmp_path / "specs", changed, [])
    assert drafts.find([tmp_path / "specs"]) == base
