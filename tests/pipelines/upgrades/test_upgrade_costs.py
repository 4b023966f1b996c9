"""The datums of an upgrade that changes the numbers of segments and of buckets."""

from pipelines.specifications.segment_numbers import SegmentNumbers
from pipelines.upgrades import upgrade_costs
from pipelines.upgrades.upgrade_costs import PipelineCost


def test_datums_follow_the_sizes_and_the_time_stays() -> None:
    of = {"preprocess": 2_500, "partition": 60, "index": 16, "search": 16, "neighbours": 256, "render": 1}
    found = [PipelineCost(name, True, False, datums, 60.0, 5) for name, datums in of.items()]
    found.append(PipelineCost("labelled", True, False))
    changed = upgrade_costs.resized(found, SegmentNumbers(1), SegmentNumbers(2, 1_024))
    assert {each.pipeline: each.datums for each in changed} == {
        "preprocess": 2_500,
        "partition": 960,
        "index": 256,
        "search": 256,
        "neighbours": 256,
        "render": 1,
        "labelled": None,
    }
    assert upgrade_costs.total(changed).seconds == upgrade_costs.total(found).seconds
    assert upgrade_costs.resized(found, SegmentNumbers(1), SegmentNumbers(1)) == found
    assert upgrade_costs.resized(changed, SegmentNumbers(2, 1_024), SegmentNumbers(1)) == found
