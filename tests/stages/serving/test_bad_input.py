"""Bad input over HTTP: each is answered with a reason, none is a fault, and memory stays bounded."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from PIL import Image

from tests.small_archives import zipped
from tests.stages.serving import services
from tests.stages.serving.memory import MemoryPeak
from tests.stages.serving.services import Answer, Service, made

PNG = {"Content-Type": "image/png"}
JSON = {"Content-Type": "application/json"}


def refused(answer: Answer, status: int, code: str, words: str = "") -> None:
    assert (answer.status, answer.code) == (status, code), answer.body
    assert words in answer.data["error"]["message"]
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "kind", ["text/plain", "", "application/x-www-form-urlencoded", "multipart/mixed", "a/b/c;d=é"]
)
def test_a_body_of_another_type(service: Service, kind: str) -> None:
    refused(service.ask("/search", made(1), {"Content-Type": kind}), 415, "wrong-type", "send application/json")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"just text", ""),
        (b"\x00" * 1000, ""),
        (b"%PDF-1.7\n", ""),
        (b"<svg xmlns='http://www.w3.org/2000/svg'></svg>", ""),
        (zipped({"a.png": made(1)}), "an archive"),
        (made(1)[:1000], "truncated"),
        (made(1)[:30], ""),
        (services.file(services.drawn(1), "JPEG")[:1500], "truncated"),
        (services.file(services.drawn(1), "GIF")[:40], ""),
        (made(1)[:8] + b"nonsense" * 100, ""),
    ],
)
def test_files_that_are_not_good_pictures(service: Service, content: bytes, words: str) -> None:
    refused(service.ask("/search", content, PNG), 422, "not-a-picture", words)
    refused(service.search({"k": 1}, [content]), 422, "not-a-picture", "0.png: ")


def test_every_picture_that_cannot_be_asked_about_is_named(service: Service) -> None:
    """Several in one question: the error has their places, so that a client can ask with the others."""
    good, gone = service.id_of("trip/north/07.png"), "0" * 64
    files = [made(1), b"just text", made(2), made(3)[:100]]
    pictures = [{"upload": number} for number in range(4)] + [{"id": good}, {"id": gone}]
    answer = service.search({"pictures": pictures}, files)
    refused(answer, 422, "not-a-picture", "1.png: ")
    named = answer.data["error"]["pictures"]
    assert [each["picture"] for each in named] == [1, 3, 5]
    assert named[1]["message"].startswith("3.png: ")
    assert gone in named[2]["message"]
    assert all(each["message"] in answer.data["error"]["message"] for each in named)
    kept = [each for place, each in enumerate(pictures) if place not in (1, 3, 5)]
    assert service.search({"pictures": kept}, files).status == 200
    assert "pictures" not in service.search({"id": gone}).data["error"]


def test_decompression_bombs_are_refused_by_their_headers(service: Service) -> None:
    bomb = services.file(Image.new("1", (30_000, 30_000)))
    assert len(bomb) < 200_000
    refused(service.ask("/search", bomb, PNG), 422, "not-a-picture", "30,000 × 30,000 pixels")


@pytest.mark.only_in_all
def test_large_pictures_are_decoded_two_at_a_time(service: Service) -> None:
    """Each takes 175 MB while it is decoded."""
    large = services.file(Image.new("RGBA", (5000, 5000), "red"), compress_level=1)
    with MemoryPeak() as peak, ThreadPoolExecutor(12) as threads:
        answers = list(threads.map(lambda _: service.ask("/search?k=1", large, PNG), range(12)))
    assert {each.status for each in answers} == {200}
    assert peak.growth < 700 << 20


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b'{"id": 1}',
        b"\xff\xfe{}",
        b"[" * 100_000,
        b'{"requests": []}',
        b'{"requests": {}}',
        b'{"requests": [1]}',
        b'{"requests": [{"requests": [{}]}]}',
        b'{"requests": ' + json.dumps([{}] * 65).encode() + b"}",
        b'{"requests": ' + json.dumps([{"k": 1000, "id": "0" * 64}] * 11).encode() + b"}",
        b"{}",
        b'{"url": "\\ud800"}',
        b'{"id": "\\ud800"}',
    ],
)
def test_json_that_is_not_a_question(service: Service, body: bytes) -> None:
    refused(service.ask("/search", body, JSON), 400, "bad-request")


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ({"k": 10**9}, "less than or equal to 1000"),
        ({"colour": "red"}, "colour is not a field"),
        ({"box": [0, 0, 1, 2]}, "box.3: "),
        ({"pictures": [{"upload": 0}] * 17}, "pictures: "),
        ({"pictures": [{"upload": 1}]}, "upload 1 is not there"),
        ({"pictures": [{"upload": -1}]}, "pictures.0.upload: "),
        ({"pictures": [{}]}, "one of upload, url and id"),
        ({"pictures": [{"upload": 0, "id": "0" * 64}]}, "one of upload, url and id"),
        ({"pictures": [{"upload": 0}], "box": [0, 0, 1, 1]}, "box belongs to a picture"),
        ({"id": "A" * 64}, "id: "),
        ({"id": "0" * 63}, "id: "),
        ({"url": ""}, "url: "),
        ({"url": "x" * 5000}, "url: "),
    ],
)
def test_fields_that_are_not_valid(service: Service, field: Mapping[str, Any], words: str) -> None:
    refused(service.search(field, [made(1)]), 400, "bad-request", words)


@pytest.mark.parametrize("parameters", ["k=1000000000", "k=1&k=2", "colour=red", "id=" + "0" * 64, "%ff=%ff"])
def test_parameters_that_are_not_valid(service: Service, parameters: str) -> None:
    refused(service.ask(f"/search?{parameters}", made(1), PNG), 400, "bad-request")


def test_what_is_named_and_not_there(service: Service) -> None:
    refused(service.search({"id": "0" * 64}), 404, "not-in-library", "was it removed?")
    refused(service.search({"url": "ftp://host/a.png"}), 422, "url-not-fetched", "http:// or https://")
    refused(service.search({"url": "http://169.254.169.254/latest/meta-data"}), 403, "private-address")
    refused(service.ask("/search", b"", PNG), 400, "bad-request", "empty")


def test_an_approximate_answer_without_codes(service: Service) -> None:
    words = "no codes for approximate answers by the euclidean distance"
    refused(service.search({"exact": False}, [made(1)]), 422, "not-searchable", words)
    refused(service.search({"exact": False, "filter": "trip/"}, [made(1), made(2)]), 422, "not-searchable", words)
    refused(service.ask("/search?exact=0", made(1), PNG), 422, "not-searchable", words)


@pytest.mark.parametrize(
    "filter",
    [
        "{" * 100,
        "{a,b" * 40,
        "*a" * 200,
        "{" + ",".join("*" for _ in range(40)) + "}",
        "{a,aa}" * 60,
        "[z-a]",
        "**/" * 100,
        "(a+)+" * 10 + "*[",
    ],
)
def test_filters_of_exponential_cost_are_refused_or_cheap(service: Service, filter: str) -> None:
    answer = service.search({"k": 1, "filter": filter}, [made(1)])
    assert answer.status == 200 or answer.code == "bad-filter"
    assert answer.status == 200 or answer.data["error"]["message"].startswith("the filter ")


def form(*parts: bytes, boundary: bytes = b"line") -> bytes:
    return b"".join(b"--line\r\n" + part + b"\r\n" for part in parts) + b"--" + boundary + b"--\r\n"


FORM = {"Content-Type": "multipart/form-data; boundary=line"}
ABOUT = b'Content-Disposition: form-data; name="picture"; filename="a.png"\r\n\r\n'


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"--line--\r\n",
        b"nonsense",
        form(b"no header"),
        form(b"Content-Disposition: form-data\r\n\r\nx"),
        form(b'Content-Disposition: form-data; name="other"\r\n\r\nx'),
        form(b'Content-Disposition: form-data; name="request"\r\n\r\n{'),
        form(*[b'Content-Disposition: form-data; name="request"\r\n\r\n{}'] * 2),
        form(b'Content-Disposition: form-data; name="picture"\r\n\r\nnot a file'),
        form(*[ABOUT + b"x"] * 17),
        form(*[ABOUT + b"x"] * 40),
        form(*[b'Content-Disposition: form-data; name="x"\r\n\r\nx'] * 40),
        form(b'Content-Disposition: form-data; name="request"\r\n\r\n' + b" " * (2 << 20)),
        form(b"X-Large: " + b"y" * (4 << 20) + b"\r\n" + ABOUT + b"x"),
        form(b"".join(b"X-%d: y\r\n" % at for at in range(100_000)) + ABOUT + b"x"),
        form(ABOUT + b"x", boundary=b"another")[:-12],
        b"\r\n" * 100_000,
        b"--line\r\n" * 10_000,
    ],
)
def test_forms_that_are_not_valid(service: Service, body: bytes) -> None:
    answer = service.ask("/search", body, FORM)
    assert 400 <= answer.status < 500
    assert answer.code in ("bad-request", "not-a-picture")


@pytest.mark.parametrize(
    "kind",
    ["", "; boundary=", "; boundary=" + "x" * 1000, "; boundary=line; charset=zlib", "; boundary=é", '; boundary="'],
)
def test_forms_whose_type_is_not_valid(service: Service, kind: str) -> None:
    body = form(ABOUT + b"x")
    answer = service.ask("/search", body, {"Content-Type": f"multipart/form-data{kind}"})
    assert 400 <= answer.status < 500 and answer.code


@pytest.mark.parametrize("charset", ["punycode", "idna", "utf-7", "unicode_escape", "utf-16", "zlib", "nonsense"])
def test_forms_in_other_encodings(service: Service, charset: str) -> None:
    """Decoding a megabyte of Punycode takes minutes."""
    text = b"a" * 500_000 + b"-" + b"zz" * 200_000
    body = form(b'Content-Disposition: form-data; name="request"\r\n\r\n' + text, ABOUT + b"x")
    kind = {"Content-Type": f"multipart/form-data; boundary=line; charset={charset}"}
    refused(service.ask("/search", body, kind), 400, "bad-request", "UTF-8")
    assert service.ask("/search", *services.form({"k": 1}, [made(1)])).status == 200


def test_json_in_a_form_is_as_small_as_elsewhere(service: Service) -> None:
    """A file of 64 MiB of brackets would take gigabytes once it is parsed."""
    brackets = b"[" + b"[]," * (1 << 20) + b"[]]"
    about = b'Content-Disposition: form-data; name="request"; filename="a.json"\r\n\r\n'
    refused(service.ask("/search", form(about + brackets), FORM), 413, "too-large")
    asked = form(about + b'{"k": 2}', ABOUT + made(1))
    assert len(service.ask("/search", asked, FORM).data["neighbors"]) == 2


def test_a_large_header_of_a_part_takes_no_memory(service: Service) -> None:
    body = form(b"X-Large: " + b"y" * (16 << 20) + b"\r\n" + ABOUT + b"x")
    with MemoryPeak() as peak:
        answer = service.ask("/search", body, FORM)
    refused(answer, 400, "bad-request", "the form is not valid")
    assert peak.growth < 40 << 20
