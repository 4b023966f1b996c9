import pytest
from hypothesis import given, strategies as st

from stages.record.name_lists import lines, parse

NAME = st.text(st.characters(exclude_categories=()), min_size=1)  # including lone surrogates, as file names have


@given(st.lists(NAME))
def test_every_name_comes_back_through_a_file(names: list[str]) -> None:
    written = "".join(f"{line}\n" for line in lines(names)).encode()
    assert list(parse(written.decode())) == names


def test_usual_names_are_written_as_they_are() -> None:
    usual = ["a b.jpg", "größe [1].jpg", "#1.jpg", 'the "best".jpg', "100%41.jpg"]
    assert list(lines(usual)) == usual
    assert list(lines(["two\nlines", '"', " x", "x\r", "bad\udcff"])) == [
        '"two\\nlines"',
        '"\\""',
        '" x"',
        '"x\\r"',
        '"bad\\udcff"',
    ]


def test_a_list_that_an_editor_wrote_is_read() -> None:
    assert list(parse("\ufeffa.jpg\r\n\r\nb.jpg\r\n")) == ["a.jpg", "b.jpg"]


def test_a_broken_quote_is_refused() -> None:
    for wrong in ('"a', '"a" b', '"\\x"'):
        with pytest.raises(ValueError, match="line 2 begins with a quote"):
            list(parse(f"a\n{wrong}\n"))
