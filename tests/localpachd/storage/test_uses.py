import time

from localpachd.storage.uses import Uses


def test_work_is_in_progress_from_its_start_to_its_end() -> None:
    uses = Uses()
    before = time.time()
    mark = uses.mark()
    assert uses.all_after(mark)
    with uses.one():
        begun = uses.since()
        assert before <= begun <= time.time()
        later = uses.mark()
        assert uses.all_after(mark) and not uses.all_after(later)
        with uses.one():
            assert uses.since() == begun
            assert not uses.all_after(later)
    assert uses.all_after(later)
    assert uses.since() >= begun
