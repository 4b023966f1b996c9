"""Specifications of a team's own that are behind those that lookalike ships."""

from pathlib import Path

from pipelines.specifications import drafts
from pipelines.specifications.drafts import SpecPatch
from pipelines.specifications.pipeline_specs import SHIPPED_SPECS
from pipelines.upgrades import upgrade_plan
from tests.pipelines.upgrades.pipeline_infos import env


def test_specifications_with_another_stage_than_the_shipped_ones_are_named() -> None:
    shipped = drafts.find([SHIPPED_SPECS])
    assert upgrade_plan.outdated_specs(shipped) == []
    older = [
        each.patched(SpecPatch(env(LOOKALIKE_STAGE="render-0"))) if each.name == "render" else each for each in shipped
    ]
    (said,) = upgrade_plan.outdated_specs(older)
    assert said.startswith(f"{SHIPPED_SPECS / Path('render.json')} names render-0, and this lookalike ships render-")
