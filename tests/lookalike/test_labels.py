"""The labels of a picture in Python, from a service that classifies alone."""

from pathlib import Path

import pytest

import lookalike
from stages.classify import classifier
from stages.record.origin import Origin
from stages.serving.follow.promoted_model import ModelCommits, PromotedModel
from tests.stages.serving import models, services
from tests.stages.serving.services import made


def test_a_picture_is_classified_by_the_address_of_a_service(tmp_path: Path) -> None:
    of = Origin("5eed" * 16, "pad", 32, 8, "small at 32 px")
    found = classifier.open(models.write(tmp_path / "model", of, 3, takes="pictures"))
    promoted = PromotedModel(ModelCommits("default", "5" * 32), found, "0" * 64, None, "cpu")
    (tmp_path / "mine.png").write_bytes(made(1))
    with (
        services.running(None, promoted=promoted) as service,
        lookalike.Library.open(f"http://127.0.0.1:{service.port}") as library,
    ):
        labels = library.classify(tmp_path / "mine.png", top=3)
        region = library.classify(made(1), top=5, box=(0.1, 0.1, 0.5, 0.5))
        with pytest.raises(lookalike.LookalikeError, match="neither JPEG, PNG"):
            library.classify(b"no picture")
    assert len(labels) == 3
    assert labels.to_arrow().column_names == ["label", "probability"]
    probabilities = labels.to_arrow()["probability"].to_pylist()
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(each.probability for each in region) == pytest.approx(1, abs=1e-5)
    assert list(region) != list(labels)
    assert labels.commits["select"] == "5" * 32
    assert labels.model["run"] == "run-3"
    assert labels[0].label in repr(labels)
    assert f"<td>{labels[0].label}</td>" in labels._repr_html_()
