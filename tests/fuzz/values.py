"""Values of the scalar fields of messages: usual ones, and those at and beyond every edge. Knows no message."""

import random
from collections import defaultdict
from collections.abc import Sequence

from google.protobuf.descriptor import FieldDescriptor

INTEGERS: Sequence[int] = (0, 1, -1, 2, 3, 7, 100, 999_999_999, 1_000_000_000, -999_999_999, 253402300799, 253402300800)
_BITS = {
    FieldDescriptor.CPPTYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, (1 << 64) - 1),
}
_FLOATS = (0.0, 1.0, -1.0, 0.5, 1e308, -1e308, 5e-324, float("inf"), float("-inf"), float("nan"))

_TEXTS: Sequence[str] = (
    "",
    " ",
    "a",
    "/",
    "//",
    ".",
    "..",
    "/..",
    "a/../b",
    "/a/b/c",
    "/a/",
    "*",
    "/*",
    "/**",
    "[",
    "(",
    "{",
    "{a,b}",
    "!",
    "^",
    "(*)",
    "/(*)/(*)",
    "$1",
    "$99999999999999999999",
    "[z-a]",
    "\\",
    "@(",
    "+(a|",
    "-",
    "--",
    "@",
    "%",
    "%s",
    "\0",
    "a\0b",
    "\n",
    "\x7f",
    "\ud7ff",
    "\ufffd",
    "𝄞",
    "é",
    "e\u0301",
    "a" * 300,
    "/" + "b" * 5000,
    "/a" * 600,
    "master",
    "master^",
    "master^9",
    "master^99999999999999999999",
    "master.1",
    "master.0",
    "master.-1",
    "^1",
    ".1",
    "stats",
    "out",
    "default",
    "0" * 32,
    "f" * 32,
    "z" * 32,
    "0" * 31,
    "1",
    "-1",
    "1e400",
    "1e-400",
    "NaN",
    "9" * 400,
    "100m",
    "1Gi",
    "-5Ki",
    "0x10",
    "http://[",
    "http://",
    "http://[::1",
    "http://a:99999/",
    "http://a:b/",
    "https://127.0.0.1:1/x",
    "http://127.0.0.1:1/x",
    "s3://",
    "s3://[",
    "gs:///",
    "wasb://a@b/",
    "file://",
    "ftp://x/y",
    "://",
    "a:b",
    "?",
    "#",
    "@every 1h",
    "@every -1s",
    "@every 99999999999h",
    "* * * * *",
    "61 * * * *",
    "@yearly",
    "{}",
    "[]",
    "null",
    '{"a":',
    '{"a": 1}',
    "true",
    "=",
    ".a",
    ".[",
    "((((" * 3000,
    "[" * 30_000,
    "{a," * 10_000,
    "!(" * 5000,
    '{"a":' * 5000,
    "select(.a)",
    "..|..",
    "2006-01-02",
    "image:tag",
    "USER",
    "user",
    "meta",
    "spec",
    "__filesets__",
    "__spec__",
)


class Values:
    """Chooses values. Texts that a server has sent are remembered by the name of their field and chosen again."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self._seen: dict[str, list[str]] = defaultdict(list)

    def remember(self, name: str, text: str) -> None:
        """Keeps a text for the fields of this name."""
        known = self._seen[name]
        if text in known:
            return
        if len(known) < 40:
            known.append(text)
        else:
            known[self.chance.randrange(len(known))] = text

    def scalar(self, field: FieldDescriptor) -> object:
        """A value that the field can hold."""
        chance, kind = self.chance, field.cpp_type
        if kind == FieldDescriptor.CPPTYPE_BOOL:
            return chance.random() < 0.5
        if kind in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
            return chance.choice(_FLOATS)
        if kind == FieldDescriptor.CPPTYPE_ENUM:
            numbers = [each.number for each in field.enum_type.values]
            return (
                chance.choice(numbers) if chance.random() < 0.8 else chance.choice((-1, 99, (1 << 31) - 1, -(1 << 31)))
            )
        if kind in _BITS:
            least, most = _BITS[kind]
            value = chance.choice((*INTEGERS, least, most, least + 1, most - 1))
            return min(max(value, least), most)
        text = self.text(field.name)
        return text.encode() if field.type == FieldDescriptor.TYPE_BYTES else text

    def text(self, name: str) -> str:
        """A text for a field of this name."""
        known = self._seen.get(name)
        draw = self.chance.random()
        if known and draw < 0.6:
            return self.chance.choice(known)
        if self._seen and draw < 0.7:
            return self.chance.choice(self._seen[self.chance.choice(sorted(self._seen))])
        return self.chance.choice(_TEXTS)
