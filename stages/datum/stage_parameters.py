"""A stage's parameters, read from its environment (transform.env of its spec). Knows no stage's parameters by name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from stages.datum.contract import StageError


def integer(environment: Mapping[str, str], name: str, default: int, lowest: int, highest: int) -> int:
    """The whole number in the variable `name`; the default if it is unset or empty.

    Raises StageError, naming the variable and its range, for anything else.
    """
    text = environment.get(name, "").strip()
    if not text:
        return default
    if not (re.fullmatch(r"[0-9]{1,18}", text) and lowest <= int(text) <= highest):
        raise StageError(
            f"{name}={text!r}: must be a whole number from {lowest} to {highest}; change it in the spec's env"
        )
    return int(text)


def one_of(environment: Mapping[str, str], name: str, options: Sequence[str]) -> str:
    """The variable `name`, which must be one of the options; the first of them if it is unset or empty.

    Raises StageError, naming the variable and its options, for anything else.
    """
    text = environment.get(name, "").strip() or options[0]
    if text not in options:
        raise StageError(f"{name}={text!r}: must be one of {', '.join(options)}; change it in the spec's env")
    return text


def number(environment: Mapping[str, str], name: str, default: float) -> float:
    """The finite number from 0 in the variable `name`, such as 0.35; the default if it is unset or empty.

    Raises StageError, naming the variable, for anything else.
    """
    text = environment.get(name, "").strip()
    if not text:
        return default
    if not re.fullmatch(r"[0-9]{1,18}(\.[0-9]{1,18})?(e-?[0-9]{1,2})?", text):
        raise StageError(f"{name}={text!r}: must be a number from 0, such as 0.35; change it in the spec's env")
    return float(text)
