import base64
import json

from hypothesis import given, strategies as st

from speclang.redaction import HIDDEN, SecretRedaction, secret_values

texts = st.text('ab1 é"\\\n\t/+', max_size=30)
secrets = texts.filter(lambda text: len(text.strip()) >= 6)


@given(st.lists(secrets, min_size=1, max_size=4), texts, texts)
def test_no_secret_is_left_in_any_form(values: list[str], before: str, after: str) -> None:
    hide = SecretRedaction([value.encode() for value in values])
    for value in values:
        encoded = base64.b64encode(value.encode()).decode()
        for text in (value, json.dumps(value), json.dumps({"x": value}, ensure_ascii=False), encoded):
            shown = hide(f"{before}{text}{after}")
            assert value.strip() not in shown
            assert json.dumps(value.strip())[1:-1] not in shown
            assert encoded not in shown
        for line in filter(lambda line: len(line.strip()) >= 6, value.splitlines()):
            assert line.strip() not in hide(f"{before}{line}{after}")


@given(st.binary(min_size=6, max_size=40))
def test_a_secret_of_any_bytes_is_hidden_in_base64(value: bytes) -> None:
    assert hide_in(value, f"data: {base64.b64encode(value).decode()}") == f"data: {HIDDEN}"


def hide_in(value: bytes, text: str) -> str:
    return SecretRedaction([value])(text)


def test_other_text_is_left_as_it_is() -> None:
    text = 'a: "b"\nhttps://example.org/c@d?e=1 s3://bucket/key f@g.h\n'
    assert SecretRedaction([])(text) == text
    assert hide_in(b"true", '{"stopped": true}') == '{"stopped": true}'


def test_the_credentials_in_a_url_are_hidden() -> None:
    assert SecretRedaction([])('{"URL": "s3://id:key@host/bucket"}') == f'{{"URL": "s3://{HIDDEN}@host/bucket"}}'


def test_values_with_names_that_say_so_are_secret() -> None:
    patch = json.dumps([{"op": "add", "value": [{"name": "GITHUB_TOKEN", "value": "of a patch"}]}])
    document = {
        "transform": {
            "env": {
                "DB_PASSWORD": "one",
                "LOOKALIKE_STAGE": "index-1",
                "ApiKey": "two",
                "aws_secret_access_key": "three",
            },
            "secrets": [{"name": "db-secret", "key": "password", "env_var": "PW"}],
            "stdin": ["{ echo no JSON; }"],
        },
        "pod_patch": patch,
    }
    assert sorted(secret_values(document)) == ["of a patch", "one", "three", "two"]
