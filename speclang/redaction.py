"""Secrets in specifications, and text without them."""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping

HIDDEN = "(hidden)"
_SHORTEST = 6
"""Characters; shorter values cannot be told from ordinary words."""
_TELLING = re.compile(r"passw|secret|token|credential|api_?key|access_?key|private_?key", re.IGNORECASE)
_IN_URL = re.compile(r"(?<=://)[^/\s:@\"'\\]*:[^/\s@\"'\\]+(?=@)")


class SecretRedaction:
    """Replaces these values and the credentials of URLs by HIDDEN. A value of several lines is found line by line, and
    a value is also found in base64 and as JSON writes it."""

    def __init__(self, values: Iterable[bytes]) -> None:
        forms = {form for value in values for form in _forms(value) if len(form) >= _SHORTEST}
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        self._values = re.compile("|".join(map(re.escape, longest_first))) if forms else None

    def __call__(self, text: str) -> str:
        """The text without secrets. Give it whole lines."""
        if self._values is not None:
            text = self._values.sub(HIDDEN, text)
        return _IN_URL.sub(HIDDEN, text)


def secret_values(document: object) -> Iterator[str]:
    """The texts in a JSON value that have names which say that they are secret: values of such keys, and the `value`
    beside such a `name`, as Kubernetes writes variables. JSON inside of a text is searched, too."""
    match document:
        case {"name": str(name), "value": str(value)} if _tells(name):
            yield value
        case Mapping():
            for name, value in document.items():
                if isinstance(value, str) and _tells(name):
                    yield value
                else:
                    yield from secret_values(value)
        case list() | tuple():
            for each in document:
                yield from secret_values(each)
        case str() if document.lstrip().startswith(("{", "[")):
            try:
                yield from secret_values(json.loads(document))
            except ValueError:  # not JSON after all
                return


def _tells(name: str) -> bool:
    return _TELLING.search(name) is not None


def _forms(value: bytes) -> Iterator[str]:
    yield base64.b64encode(value).decode()
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return
    for part in (text, text.strip(), *(line.strip() for line in text.splitlines())):
        yield part
        yield json.dumps(part)[1:-1]
        yield json.dumps(part, ensure_ascii=False)[1:-1]
