"""References of container images: their parts, and the same image in another registry. Contacts no registry."""

import re
from dataclasses import dataclass, replace

DEFAULT_TAG = "latest"
"""The tag that a container engine uses for a reference without tag and digest."""

_REFERENCE = re.compile(
    r"(?P<where>(?:[a-zA-Z0-9.-]+(?::[0-9]+)?/)?(?:[a-z0-9]+(?:[._-]+[a-z0-9]+)*/)*)"
    r"(?P<name>[a-z0-9]+(?:[._-]+[a-z0-9]+)*)"
    r"(?::(?P<tag>[\w][\w.-]{0,127}))?(?:@(?P<digest>[a-z0-9]+:[0-9a-f]{32,}))?"
)


@dataclass(frozen=True, slots=True)
class ImageReference:
    """A reference such as registry.example.com/team/lookalike-cpu:0.1.0. `where` is everything before the name,
    with its slash; `tag` and `digest` are "" if absent."""

    where: str
    name: str
    tag: str
    digest: str

    @classmethod
    def parse(cls, text: str) -> "ImageReference | None":
        """The parts of a reference, or None for an invalid one."""
        found = _REFERENCE.fullmatch(text)
        return (
            None if found is None else cls(**{part: found[part] or "" for part in ("where", "name", "tag", "digest")})
        )

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.where}{self.name}{tag}" + (f"@{self.digest}" if self.digest else "")

    @property
    def registry(self) -> str:
        """The host of the registry; "" for Docker Hub, which references leave out."""
        first = self.where.partition("/")[0]
        return first if "." in first or ":" in first or first == "localhost" else ""

    def moved(self, where: str, tag: str = "", name: str = "") -> "ImageReference":
        """The same image in another place, such as registry.example.com/team, with another tag or another name; ""
        keeps each. A new tag or name takes the place of a digest too."""
        moved = replace(self, where=f"{where}/") if where else self
        return replace(moved, tag=tag or self.tag, name=name or self.name, digest="") if tag or name else moved
