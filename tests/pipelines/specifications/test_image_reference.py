"""Names of images: valid names, their parts, and the same image in another registry."""

import pytest

from pipelines.specifications.image_reference import ImageReference


@pytest.mark.parametrize(
    ("text", "where", "name", "tag", "registry"),
    [
        ("ubuntu", "", "ubuntu", "", ""),
        ("ubuntu:20.04", "", "ubuntu", "20.04", ""),
        ("rapidsai/base:25.02", "rapidsai/", "base", "25.02", ""),
        ("localhost/a:1", "localhost/", "a", "1", "localhost"),
        ("127.0.0.1:5000/team/a-b.c:v1_x", "127.0.0.1:5000/team/", "a-b.c", "v1_x", "127.0.0.1:5000"),
        ("registry.cn-shanghai.aliyuncs.com/ns/a:1", "registry.cn-shanghai.aliyuncs.com/ns/", "a", "1", None),
        (f"r.io/a@sha256:{'0' * 64}", "r.io/", "a", "", "r.io"),
    ],
)
def test_the_parts_of_a_name(text: str, where: str, name: str, tag: str, registry: str | None) -> None:
    image = ImageReference.parse(text)
    assert image is not None
    assert (image.where, image.name, image.tag) == (where, name, tag)
    assert image.registry == (where.split("/")[0] if registry is None else registry)
    assert str(image) == text


@pytest.mark.parametrize("text", ["", "Ubuntu", "a b", "a:", "a:b:c", "/a", "a//b", "a@sha256:12", "https://r.io/a"])
def test_invalid_names(text: str) -> None:
    assert ImageReference.parse(text) is None


def test_moving_to_another_registry() -> None:
    image = ImageReference("", "lookalike-cpu", "0.1.0", "")
    assert str(image.moved("r.io/t")) == "r.io/t/lookalike-cpu:0.1.0"
    assert str(image.moved("r.io/t").moved("r.io/u", "2")) == "r.io/u/lookalike-cpu:2"
    assert str(image.moved("", "2")) == "lookalike-cpu:2"
    assert str(image.moved("", name="mine")) == "mine:0.1.0"
    pinned = ImageReference("", "a", "", f"sha256:{'0' * 64}")
    assert str(pinned.moved("r.io")) == f"r.io/a@sha256:{'0' * 64}"
    assert str(pinned.moved("r.io", "1")) == "r.io/a:1"
    assert str(pinned.moved("", name="b")) == "b"
