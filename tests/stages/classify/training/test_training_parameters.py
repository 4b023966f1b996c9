"""Files of parameters: read strictly, with the reason and the nearest name."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, strategies as st

from stages.classify.training.training_parameters import (
    AugmentationParameters,
    ConvolutionalParameters,
    FineTuneParameters,
    MovementParameters,
    TrainingParameters,
    format_parameters,
    parse,
    run_name,
)
from stages.datum.contract import StageError


def of(**data: Any) -> TrainingParameters:
    return parse("run.json", json.dumps(data).encode())


def test_an_empty_object_is_all_defaults() -> None:
    assert parse("linear.json", b"{}") == TrainingParameters("linear")
    assert TrainingParameters("linear").as_data() == {
        "head": "linear",
        "hidden": [256],
        "dropout": 0.0,
        "epochs": 100,
        "learning_rate": TrainingParameters.learning_rate,
        "weight_decay": TrainingParameters.weight_decay,
        "label_smoothing": TrainingParameters.label_smoothing,
        "batch_size": 256,
        "class_weight": "none",
        "folds": 5,
        "seed": 0,
        "fine_tune": None,
    }


def test_fine_tuning_has_defaults_of_its_own() -> None:
    assert of(fine_tune={}).fine_tune == FineTuneParameters()
    assert of(fine_tune={"layers": 12, "augmentation": {"flip": False}}).fine_tune == FineTuneParameters(
        layers=12, augmentation=AugmentationParameters(flip=False)
    )


def test_a_convolutional_network_has_defaults_of_its_own() -> None:
    assert of(convolutional={}).convolutional == ConvolutionalParameters()
    assert of(convolutional={"augmentation": {"zoom": 0.2}}).convolutional == ConvolutionalParameters(
        augmentation=MovementParameters(zoom=0.2)
    )
    assert not ConvolutionalParameters().augmentation.flip
    assert [of().takes, of(fine_tune={}).takes, of(convolutional={}).takes] == ["vectors", "pictures", "pictures"]


networks = st.builds(
    ConvolutionalParameters,
    filters=st.lists(st.integers(1, 8192), min_size=1, max_size=4).map(tuple),
    epochs=st.integers(1, 1000),
    cross_validation=st.booleans(),
    augmentation=st.builds(MovementParameters, rotation=st.floats(0, 0.5)),
)

tunings = st.builds(
    FineTuneParameters,
    epochs=st.integers(1, 1000),
    learning_rate=st.floats(1e-9, 1),
    batch_size=st.integers(1, 1024),
    layers=st.none() | st.integers(1, 1000),
    augmentation=st.builds(
        AugmentationParameters, flip=st.booleans(), shift=st.floats(0, 0.5), contrast=st.floats(0, 1)
    ),
    checkpoints=st.sampled_from(["s3://bucket/a", "file:///runs", "gs://b", "az://c/d"]),
    checkpoint_steps=st.integers(0, 1000),
)


@given(
    st.builds(
        TrainingParameters,
        name=st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True),
        head=st.just("mlp"),
        hidden=st.lists(st.integers(1, 8192), min_size=1, max_size=4).map(tuple),
        dropout=st.floats(0, 0.9),
        class_weight=st.sampled_from(["none", "balanced"]),
        folds=st.integers(2, 20),
        seed=st.integers(0, 2**31 - 1),
    ),
    st.one_of(
        st.builds(dict, epochs=st.integers(1, 10_000), learning_rate=st.floats(1e-9, 10)),
        st.builds(dict, epochs=st.integers(1, 10_000), fine_tune=tunings),
        st.builds(dict, convolutional=networks),
    ),
)
def test_written_parameters_are_read_back(parameters: TrainingParameters, others: dict[str, Any]) -> None:
    parameters = replace(parameters, **others)
    assert parse(f"{parameters.name}.json", format_parameters(parameters)) == parameters


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"learnin_rate": 1}', "learnin_rate is not a parameter: did you mean learning_rate?"),
        ('{"Learning-Rate": 1}', "Learning-Rate is not a parameter: did you mean learning_rate?"),
        ('{"fine_tune": {"epoch": 1}}', "fine_tune.epoch is not a parameter: did you mean epochs?"),
        ('{"fine_tune": {"augmentation": {"flips": true}}}', "fine_tune.augmentation.flips is not a parameter: did"),
        ('{"xyzzy": 1}', "xyzzy is not a parameter: the parameters here are head, hidden, dropout, epochs"),
        ('{"epochs": 5, "epochs": 6}', '"epochs" is there twice'),
        ('{"learning_rate": NaN}', "it holds NaN, which is not a number of JSON"),
        ('{"learning_rate": -Infinity}', "it holds -Infinity"),
        ('{"learning_rate": 1e999}', "learning_rate must be a number over 0 and up to 10; it is Infinity"),
        ('{"learning_rate": 0}', "learning_rate must be a number over 0 and up to 10; it is 0"),
        ('{"learning_rate": "0.1"}', 'learning_rate must be a number over 0 and up to 10; it is "0.1"'),
        ('{"learning_rate": true}', "learning_rate must be a number over 0 and up to 10; it is true"),
        (f'{{"dropout": {"9" * 400}}}', "dropout must be a number from 0 to 0.9; it is 9999"),
        (f'{{"seed": {"9" * 5000}}}', "it is not valid JSON"),
        ('{"epochs": 0}', "epochs must be a whole number from 1 to 10000; it is 0"),
        ('{"epochs": 5.0}', "epochs must be a whole number from 1 to 10000; it is 5.0"),
        ('{"epochs": true}', "epochs must be a whole number"),
        ('{"folds": 1}', "folds must be a whole number from 2 to 20; it is 1"),
        ('{"folds": 21}', "folds must be a whole number from 2 to 20; it is 21"),
        ('{"seed": -1}', "seed must be a whole number from 0 to 2147483647; it is -1"),
        ('{"head": "liner"}', 'head must be one of linear, mlp; it is "liner"; did you mean linear?'),
        ('{"head": null}', "head must be one of linear, mlp; it is null"),
        ('{"head": "mlp", "hidden": 256}', "hidden must be a list of 1 to 4 widths, such as [256]; it is 256"),
        ('{"head": "mlp", "hidden": []}', "hidden must be a list of 1 to 4 widths"),
        ('{"head": "mlp", "hidden": [0]}', "each width in hidden must be a whole number from 1 to 8192; it is 0"),
        ('{"hidden": [64]}', 'hidden is a parameter of the head mlp: add "head": "mlp", or remove hidden'),
        ('{"dropout": 0.5}', "dropout is a parameter of the head mlp"),
        ('{"class_weight": "balance"}', "class_weight must be one of none, balanced"),
        ('{"label_smoothing": 0.6}', "label_smoothing must be a number from 0 to 0.5; it is 0.6"),
        ('{"fine_tune": true}', "fine_tune must be an object"),
        ('{"fine_tune": {"layers": 0}}', 'fine_tune.layers must be "all" or the number of last layers'),
        ('{"fine_tune": {"augmentation": {"flip": 1}}}', "fine_tune.augmentation.flip must be true or false; it is 1"),
        ('{"fine_tune": {"checkpoints": "bucket"}}', "fine_tune.checkpoints must be the URL of a bucket"),
        ('{"fine_tune": {"checkpoints": "http://host/a"}}', "fine_tune.checkpoints must be the URL of a bucket"),
        ('{"fine_tune": {"checkpoint_steps": 9}}', "fine_tune.checkpoint_steps needs fine_tune.checkpoints"),
        ('{"convolutional": {"filters": []}}', "convolutional.filters must be a list of 1 to 4 widths"),
        ('{"convolutional": {"augmentation": {"flips": 1}}}', "convolutional.augmentation.flips is not a parameter"),
        ('{"convolutional": {}, "epochs": 5}', "epochs has no effect beside convolutional: use convolutional.epochs"),
        ('{"convolutional": {}, "fine_tune": {}}', "fine_tune and convolutional are two kinds of training: remove one"),
        ("[]", "it must be an object"),
        ("", "it is not valid JSON: line 1, column 1"),
        ("{,}", "it is not valid JSON: line 1, column 2"),
        ("[" * 100_000, "it is not valid JSON"),
        (" " * (1 << 21), "it has 2,097,152 bytes; parameters have at most 1,048,576"),
    ],
)
def test_anything_else_is_refused_with_its_reason(content: str, reason: str) -> None:
    with pytest.raises(StageError) as refused:
        parse("run.json", content.encode())
    assert str(refused.value).startswith(f"run.json: {reason}")
    assert len(str(refused.value)) < 400


def test_content_must_be_utf_8_and_may_have_a_byte_order_mark() -> None:
    assert parse("run.json", b'\xef\xbb\xbf{"epochs": 7}').epochs == 7
    with pytest.raises(StageError, match="it is not in UTF-8"):
        parse("run.json", b'{"head": "\xff"}')


def test_the_name_of_a_run_is_that_of_its_file() -> None:
    assert run_name("a.b-c_1.json") == "a.b-c_1"


@pytest.mark.parametrize(
    "name", ["linear", "linear.txt", ".json", "a/b.json", "%a.json", "a b.json", "a" * 101 + ".json"]
)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(StageError, match="is not the name of a file of parameters: it must end in .json"):
        parse(name, b"{}")
