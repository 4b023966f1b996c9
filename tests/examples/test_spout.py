"""A pipeline without input that runs forever and commits what it receives, and an ordinary one below it."""

import itertools

from tests.examples.example import Example


def test_the_messages_of_a_spout_are_processed(example: Example) -> None:
    example.create("spout.json", "processor.json")
    lines = example.client.get_pipeline_logs("spout", follow=True, project_name=example.project)
    said = (line.message.split() for line in lines if line.user)
    first, second = itertools.islice((words[1] for words in said if words[0] == "committed"), 2)
    assert example.went("processor", first) == ("JOB_SUCCESS", {"processed": 2, "total": 2})
    assert example.went("processor", second) == ("JOB_SUCCESS", {"processed": 2, "skipped": 2, "total": 4})
    sizes = sorted(len(data) for data in example.data("spout").values())
    assert sizes == [1000, 1000, 2000, 2000]
    sorted_ = example.files("processor")
    assert [path[:3] for path in sorted_] == ["/1K", "/1K", "/2K", "/2K"]
    assert {text.strip() for text in sorted_.values()} == {path[1:] for path in example.files("spout")}
    assert list(example.client.list_job(pipeline_name="spout", project_name=example.project)) == []
