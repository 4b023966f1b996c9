"""A model for each combination of parameters, a score for each model, and a link to the best: one repo read twice."""

from tests.examples.example import Example


def test_the_best_model_is_selected(example: Example) -> None:
    example.repo("raw_data", "parameters")
    example.put("raw_data", {"/points.csv": "1,2\n2,4\n4,8\n8,16\n10,20\n"})
    example.put("parameters", {"/c/1": "1", "/c/2": "2", "/gamma/0": "0", "/gamma/5": "5"})
    example.create("split.json", "model.json", "select.json")
    assert example.went("model") == ("JOB_SUCCESS", {"processed": 4, "total": 4})
    assert example.files("model") == {
        "/model_C1_G0.pkl": "2\n", "/model_C1_G5.pkl": "7\n", "/model_C2_G0.pkl": "4\n", "/model_C2_G5.pkl": "9\n",
    }  # fmt: skip
    assert example.went("test") == ("JOB_SUCCESS", {"processed": 4, "total": 4})
    assert example.went("select") == ("JOB_SUCCESS", {"processed": 1, "total": 1})
    assert example.files("select") == {"/model_C1_G0.pkl": "2\n"}

    # One more value of one parameter: the models of the others stay.
    more = example.put("parameters", {"/gamma/9": "9"})
    assert example.went("model", more) == ("JOB_SUCCESS", {"processed": 2, "skipped": 4, "total": 6})
    assert example.went("test", more) == ("JOB_SUCCESS", {"processed": 2, "skipped": 4, "total": 6})
    assert example.went("select", more) == ("JOB_SUCCESS", {"processed": 1, "total": 1})

    # Other points for testing only: the directory with both has another hash, so the models are made again, with the
    # same bytes. Their scores change, and so does the best one.
    other = example.put("raw_data", {"/points.csv": "1,2\n2,4\n4,8\n1,7\n2,14\n"})
    assert example.went("model", other) == ("JOB_SUCCESS", {"processed": 6, "total": 6})
    assert example.went("test", other) == ("JOB_SUCCESS", {"processed": 6, "total": 6})
    assert example.went("select", other) == ("JOB_SUCCESS", {"processed": 1, "total": 1})
    assert example.files("select") == {"/model_C1_G5.pkl": "7\n"}
