"""Pages in HTML and drawings in SVG: the templates beside this module, filled with values.

Every text that a template shows is escaped, and characters that cannot be seen, or would change its direction, are
replaced. A page is one document with one style sheet, runs no scripts, and may load nothing. Equal values
give equal text. Knows nothing of what a page is about.
"""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from stages.datum import text_format

_TEMPLATES = Path(__file__).parent / "templates"


def fill(template: str, **values: Any) -> str:
    """The template of that name with these values, as text for a UTF-8 file. Those in Markdown escape nothing
    themselves. Raises jinja2.UndefinedError if it needs a value that is missing."""
    return _ENVIRONMENT.get_template(template).render(values)


def part(template: str, **values: Any) -> Markup:
    """The template of that name with these values, as a part of another one, which does not escape it again."""
    return Markup(fill(template, **values))


def share(value: float) -> str:
    """A share or a mean of shares, 0 to 1."""
    return f"{value:.3f}"


def _shown(value: Any) -> Any:
    """A value as a template shows it, before it is escaped; of a coordinate, at most two decimals."""
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return text_format.visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


_ENVIRONMENT = Environment(
    loader=FileSystemLoader(_TEMPLATES),
    autoescape=lambda name: name is None or not name.endswith(".md"),
    finalize=_shown,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    auto_reload=False,
    keep_trailing_newline=True,
)
_ENVIRONMENT.globals["style"] = Markup((_TEMPLATES / "page.css").read_text(encoding="utf-8"))
_ENVIRONMENT.filters |= {
    "base64": lambda content: Markup(b64encode(content).decode("ascii")),  # long, and holds nothing to escape
    "bytes": text_format.size,
    "counted": text_format.counted,
    "distance": text_format.distance,
    "number": lambda value: f"{value:,}",
    "share": share,
    "signed": lambda value: f"{value:+.3f}",
}
