from localpachd.storage.active_uses import ActiveUses


def test_work_is_in_progress_from_its_start_to_its_end() -> None:
    uses = ActiveUses()
    mark = uses.mark()
    assert uses.all_after(mark)
    with uses.one():
        later = uses.mark()
        assert uses.all_after(mark) and not uses.all_after(later)
        with uses.one():
            assert not uses.all_after(later)
    assert uses.all_after(later)


def test_a_generation_is_over_once_all_work_that_began_in_it_is() -> None:
    uses = ActiveUses(5)
    assert uses.generation == 5
    with uses.one():
        assert [uses.advance(later) for later in (6, 7, 8)] == [5, 5, 5]
        with uses.one():
            assert uses.advance(9) == 5
    assert uses.advance(10) == 9
    assert uses.generation == 10
