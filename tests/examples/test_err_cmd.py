"""A second command decides whether a datum that failed fails its job, or is left out."""

from tests.examples.example import Example


def test_failed_datums_are_forgiven_or_not(example: Example) -> None:
    example.repo("input")
    example.create("error_test.json")
    first = example.put("input", {"/file1": "foo\n"})
    assert example.went("error_test", first) == ("JOB_SUCCESS", {"processed": 1, "total": 1})
    second = example.put("input", {"/file2": "bar\n"})
    assert example.went("error_test", second) == ("JOB_SUCCESS", {"skipped": 1, "recovered": 1, "total": 2})
    assert example.files("error_test") == {"/file1": "foo\n"}
    # Once for each attempt; each one found an empty /pfs/out.
    assert example.log("error_test") == ["attempt at file2 left file2"] * 2

    third = example.put("input", {"/file3": "baz\n"})
    assert example.went("error_test", third) == ("JOB_FAILURE", {"failed": 1, "total": 3})
    assert example.files("error_test", third) == {"/file1": "foo\n"}

    fourth = example.put("input", {"/file3": None, "/file1": "FOO\n"})
    assert example.went("error_test", fourth) == ("JOB_SUCCESS", {"processed": 1, "recovered": 1, "total": 2})
    assert example.files("error_test") == {"/file1": "FOO\n"}
