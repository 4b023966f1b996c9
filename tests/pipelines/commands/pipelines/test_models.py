"""The group `model`: the backbones by name, and the errors of names that are unknown."""

import json

from tests.command import Command


def test_the_backbones_are_listed_by_name(command: Command) -> None:
    said = command.says("model", "list")
    first, *rows = said.splitlines()
    assert first.split() == ["name", "px", "dimension", "MB", "licence", "weights", "speed", "precision"]
    names = [row.split()[0] for row in rows]
    assert {"efficientnet-lite0", "efficientnet-lite2", "resnet50", "mobilenetv2", "convnext_tiny"} <= {*names}
    assert rows[0].split()[:6] == ["efficientnet-lite0", "224", "1280", "19", "Apache-2.0", "installed"]
    assert all(len(row) <= 80 for row in said.splitlines() if row.split()[0] in names[:40])
    assert "speed: pictures of 224 px a second on two idle cores" in said

    assert "licence: of the weights, as their publishers state it" in said
    assert "resnet50: that of the original experiment: takes pixels as they are" in said
    assert "resnet50-caffe: takes pixels as its weights were trained on them (blue first" in said

    listed = json.loads(command.says("model", "list", "--json"))
    assert [each["name"] for each in listed] == names[: len(listed)]
    assert {each["name"] for each in listed if each["weights"] == "installed"} == {
        each["name"] for each in listed if each["precision"] is not None
    }
    assert [each["name"] for each in listed if each["note"]] == ["resnet50", "resnet50-caffe"]


def test_a_mistyped_backbone_is_answered_with_the_nearest_ones(command: Command) -> None:
    assert command.fails("model", "push", "efficientnet-lit2") == (
        "efficientnet-lit2 is neither the name of a backbone nor a file: did you mean efficientnet-lite2, "
        "efficientnet-lite1, efficientnet-lite0, efficientnetb2? `lookalike model list` shows all names"
    )
    assert "did you mean convnext_tiny, " in command.fails("model", "push", "ConvNextTny")
    assert command.fails("model", "push", "qqq") == (
        "qqq is neither the name of a backbone nor a file: `lookalike model list` shows all names"
    )
