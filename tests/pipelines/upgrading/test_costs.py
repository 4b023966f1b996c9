"""The datums of an upgrade that changes the numbers of segments and of buckets."""

from pipelines.specifications.proportions import Numbers
from pipelines.upgrading import costs
from pipelines.upgrading.costs import Cost


def test_datums_follow_the_sizes_and_the_time_stays() -> None:
    of = {"preprocess": 2_500, "partition": 60, "index": 16, "search": 16, "neighbours": 256, "render": 1}
    found = [Cost(name, True, False, datums, 60.0, 5) for name, datums in of.items()]
    found.append(Cost("labelled", True, False))
    changed = costs.resized(found, Numbers(1), Numbers(2, 1_024))
    assert {each.pipeline: each.datums for each in changed} == {
        "preprocess": 2_500,
        "partition": 960,
        "index": 256,
        "search": 256,
        "neighbours": 65_536,
        "render": 1,
        "labelled": None,
    }
    assert costs.total(changed).seconds == costs.total(found).seconds
    assert costs.resized(found, Numbers(1), Numbers(1)) == found
    assert costs.resized(changed, Numbers(2, 1_024), Numbers(1)) == found
