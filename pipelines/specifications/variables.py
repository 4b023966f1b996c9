"""Variables of specifications set on the command line: NAME=VALUE, in every pipeline that has the variable."""

from collections.abc import Sequence

from pipelines.errors import LookalikeError
from pipelines.specifications.drafts import SpecDraft, SpecPatch
from pipelines.specifications.findings import did_you_mean
from stages.datum.stage_version import STAGE

_WHERE = ("transform", "env")


def apply(settings: Sequence[str], found: Sequence[SpecDraft]) -> list[SpecDraft]:
    """The specifications with these variables changed. Raises LookalikeError for a setting without a name or a value,
    and for a variable that none of them has."""
    drafts = list(found)
    for setting in settings:
        name, _, value = setting.partition("=")
        if not name or not value:
            raise LookalikeError(f"{setting} is not a variable with its value, such as K=10")
        known = {each for draft in drafts for each in draft.get(*_WHERE, default={})} - {STAGE}
        if name not in known:
            fix = did_you_mean(name.upper(), known, f"they have {', '.join(sorted(known)) or 'none'}")
            raise LookalikeError(f"no specification has the variable {name}: {fix}")
        patch = SpecPatch({"transform": {"env": {name: value}}})
        drafts = [draft.patched(patch) if name in draft.get(*_WHERE, default={}) else draft for draft in drafts]
    return drafts
