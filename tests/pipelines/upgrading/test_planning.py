"""Specifications of a team's own that are behind those that lookalike ships."""

from pathlib import Path

from pipelines.specifications import drafts
from pipelines.specifications.drafts import Draft, Patch
from pipelines.specifications.reading import HERE
from pipelines.upgrading import planning
from tests.pipelines.upgrading.infos import env


def test_specifications_with_another_stage_than_the_shipped_ones_are_named() -> None:
    shipped = drafts.find([HERE])
    assert planning.behind(shipped) == []
    older = [
        each.patched(Patch(env(LOOKALIKE_STAGE="render-0"))) if each.name == "render" else each for each in shipped
    ]
    (said,) = planning.behind(older)
    assert said.startswith(f"{HERE / Path('render.json')} names render-0, and this lookalike ships render-")


def test_a_specification_of_a_retired_pipeline_is_named() -> None:
    document = {"pipeline": {"name": "evaluate-sum"}, "transform": {"env": {"LOOKALIKE_STAGE": "evaluate-sum-1"}}}
    (said,) = planning.behind([Draft(Path("evaluate-sum.json"), document, {})])
    assert said == (
        "evaluate-sum.json is of a pipeline that lookalike no longer has, since evaluate writes its output: delete the "
        "file"
    )
