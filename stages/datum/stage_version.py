"""The version of a stage's code, which each of its pipelines states. Imports nothing, as the contract needs it."""

STAGE = "LOOKALIKE_STAGE"
"""The variable of a pipeline with the version of the code that its output is of, such as "index-13"."""


def refusal(stage: str, own: int, deployed: str) -> str:
    """The reason why this code must not process the datums of a pipeline, "" if it may. A version of another name is a
    user's own.

    stage: its name, as in specifications. own: its VERSION. deployed: the pipeline's variable.
    """
    name, _, number = deployed.rpartition("-")
    if name != stage or not number.isdecimal() or int(number) == own:
        return ""
    if int(number) < own:
        other, fix = "an earlier", "run `lookalike upgrade`, or install the lookalike that deployed it"
    else:
        other, fix = "a later", "install the lookalike that deployed it where localpachd runs, or give it its image"
    here = f"{stage}-{own}"
    return f"the pipeline was deployed by {other} version of lookalike, for {deployed}, and this code is {here}: {fix}"
