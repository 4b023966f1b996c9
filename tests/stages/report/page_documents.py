"""Pages as a browser reads them."""

from __future__ import annotations

from html.parser import HTMLParser

_VOID = {"meta", "img", "br"}
_LOADING = {"script", "link", "iframe", "object", "form"}


class PageDocument(HTMLParser):
    """Fails if elements are not closed in order, or the page could load anything. elements: their names and attributes;
    texts: those outside of styles."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []
        assert "url(" not in text.replace("url(#", "")
        assert {name for name, _ in self.elements}.isdisjoint(_LOADING)
        assert all(link.startswith("data:image/jpeg;base64,") for link in self.pictures)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self._open and data.strip():
            self.texts.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """The attributes of all elements of that name."""
        return [attributes for name, attributes in self.elements if name == tag]

    @property
    def pictures(self) -> list[str]:
        """The addresses of all that is shown in the page."""
        return [attributes["src"] or "" for _, attributes in self.elements if "src" in attributes]

    @property
    def alternatives(self) -> list[str]:
        """The texts for readers who do not see the pictures."""
        return [attributes["alt"] or "" for attributes in self.all("img")]

    @property
    def links(self) -> list[str]:
        """The addresses of all links."""
        return [attributes["href"] or "" for attributes in self.all("a")]

    @property
    def words(self) -> str:
        """All texts in one line."""
        return " ".join("".join(self.texts).split())
