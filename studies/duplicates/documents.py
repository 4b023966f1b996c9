"""Documents that look alike: pages of text, and pages, invoices, forms and timetables of which two differ in a digit or
in a field. Drawn here, in a typeface that is given; knows no set's use."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

from PIL import Image, ImageDraw

from studies.duplicates.typesetting import Face, broken, fill, paragraphs

Typeface = Callable[[float], Face]
"""The face of a size, in pixels."""

MANUALS = (
    *("argparse", "codecs", "configparser", "difflib", "doctest", "email/message", "logging/__init__", "optparse"),
    *("shutil", "tarfile", "turtle", "typing"),
)
LIBRARIES = (
    *("_pydecimal", "http/client", "inspect", "ipaddress", "pdb", "smtplib", "socket", "ssl", "statistics"),
    *("subprocess", "tempfile", "textwrap", "threading", "unittest/case", "urllib/request"),
)
"""Modules whose docstrings are the text."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A page of A4: dots per inch, size of the letters in points, columns, and whether lines have one length."""

    dpi: int
    points: float
    columns: int
    justified: bool
    most: int = 60


LETTER = Layout(dpi=100, points=11, columns=1, justified=False)
PAPER = Layout(dpi=150, points=9.5, columns=2, justified=True, most=40)

_A4 = (8.27, 11.69)  # inches
_MARGIN = 0.9  # inches
_DPI = 100  # of forms
_REVISIONS = 10
_VARIANTS = 16
_ITEMS = (
    "Paper A4",
    "Toner",
    "Envelopes",
    "Postage",
    "Stapler",
    "Ring binders",
    "Labels",
    "Pens, blue",
    "Rulers",
    "Ink",
)
_FIELDS = (
    "Family name",
    "Given name",
    "Date of birth",
    "Street",
    "Postcode",
    "Town",
    "Telephone",
    "Account",
    "Tax number",
)
_QUESTIONS = (
    "Married",
    "Employed",
    "Pensioner",
    "Student",
    "Owner of a house",
    "Member of a union",
    "Resident",
    "Insured",
)
_TOWNS = (
    "Ashford",
    "Bexhill",
    "Canterbury",
    "Deal",
    "Eastbourne",
    "Folkestone",
    "Gillingham",
    "Hastings",
    "Lewes",
    "Rye",
)


def pages(modules: Sequence[str], typeface: Typeface, layout: Layout) -> Iterator[Image.Image]:
    """Full pages of running text, one after another."""
    face = typeface(layout.points * layout.dpi / 72)
    lines = broken(paragraphs(modules), face, _column(layout, 0)[2] - _column(layout, 0)[0])
    for _ in range(layout.most):
        page = _blank(layout.dpi)
        draw = ImageDraw.Draw(page)
        boxes = (_column(layout, number) for number in range(layout.columns))
        full = [fill(draw, box, lines, face, layout.justified) for box in boxes]
        if not all(full):
            return
        yield page


def revisions(typeface: Typeface, modules: Sequence[str] = MANUALS) -> Iterator[Image.Image]:
    """Five pages of text, each in ten revisions that differ in one small digit at its foot, from the same place."""
    for page in itertools.islice(pages(modules, typeface, LETTER), 5):
        face = typeface(13)
        left, foot = _MARGIN * _DPI, (_A4[1] - 0.6) * _DPI
        for number in range(_REVISIONS):
            copy = page.copy()
            _write(copy, (left, foot), "Revision", face)
            _write(copy, (left + 60, foot), str(number), face)
            yield copy


def invoices(typeface: Typeface) -> Iterator[Image.Image]:
    """Invoices of four customers, each in variants that differ in the price and amount of one row. No sum is on
    them, so that nothing else differs."""
    for customer in range(4):
        lot = Random(f"invoice {customer}")
        rows = [(lot.choice(_ITEMS), lot.randint(1, 40), lot.randint(100, 9999)) for _ in range(14 + customer)]
        for _ in range(_VARIANTS):
            number = lot.randrange(len(rows))
            changed = list(rows)
            changed[number] = (*rows[number][:2], lot.randint(100, 9999))
            yield _invoice(typeface, customer, changed)


def _invoice(typeface: Typeface, customer: int, rows: Sequence[tuple[str, int, int]]) -> Image.Image:
    page, (large, small) = _blank(_DPI), (typeface(30), typeface(15))
    draw = ImageDraw.Draw(page)
    draw.rectangle((80, 70, 150, 140), ("#24507a", "#7a2430", "#2f6b3a", "#6b5a2f")[customer])
    _write(page, (170, 85), "Weald Office Supplies Ltd", large)
    for number, line in enumerate((f"Customer {4711 + 13 * customer}", "14 Market Street", "Tunbridge Wells")):
        _write(page, (80, 190 + 22 * number), line, small)
    _write(page, (80, 300), f"Invoice 2024-{310 + customer}", typeface(22))
    for number, (what, count, price) in enumerate(rows):
        y = 360 + 30 * number
        draw.line((80, y + 24, 750, y + 24), "#999999")
        _write(page, (80, y), what, small)
        for x, text in ((440, str(count)), (580, f"{price / 100:.2f}"), (740, f"{count * price / 100:.2f}")):
            draw.text((x, y), text, "black", small, "ra")
    _write(page, (80, 1060), "Payable within 30 days. Prices include VAT.", small)
    return page


def forms(typeface: Typeface) -> Iterator[Image.Image]:
    """Forms of four persons, each in variants of which one answer is another: a digit, or a box that is ticked."""
    for person in range(4):
        lot = Random(f"form {person}")
        answers = ["".join(lot.choices("0123456789", k=9)) for _ in _FIELDS]
        ticks = [lot.random() < 0.4 for _ in _QUESTIONS]
        yield _form(typeface, answers, ticks)
        for number in range(_VARIANTS - len(_QUESTIONS)):
            other = list(answers)
            place = lot.randrange(len(other))
            other[place] = f"{other[place][:number]}{(int(other[place][number]) + 1) % 10}{other[place][number + 1 :]}"
            yield _form(typeface, other, ticks)
        for number in range(len(_QUESTIONS)):
            yield _form(typeface, answers, [tick is not (place == number) for place, tick in enumerate(ticks)])


def _form(typeface: Typeface, answers: Sequence[str], ticks: Sequence[bool]) -> Image.Image:
    page, face = _blank(_DPI), typeface(15)
    draw = ImageDraw.Draw(page)
    _write(page, (80, 70), "Application for a certificate", typeface(28))
    for number, (field, answer) in enumerate(zip(_FIELDS, answers, strict=True)):
        y = 150 + 56 * number
        _write(page, (80, y), field, face)
        for place, digit in enumerate(answer):
            draw.rectangle((260 + 40 * place, y - 10, 296 + 40 * place, y + 30), None, "#444444")
            draw.text((278 + 40 * place, y + 10), digit, "#1a1a80", typeface(22), "mm")
    for number, (question, tick) in enumerate(zip(_QUESTIONS, ticks, strict=True)):
        x, y = 80 + 340 * (number % 2), 700 + 50 * (number // 2)
        draw.rectangle((x, y, x + 22, y + 22), None, "#444444", 2)
        if tick:
            draw.line((x + 4, y + 4, x + 18, y + 18), "#1a1a80", 3)
            draw.line((x + 18, y + 4, x + 4, y + 18), "#1a1a80", 3)
        _write(page, (x + 34, y + 2), question, face)
    draw.line((80, 1040, 380, 1040), "black")
    _write(page, (80, 1048), "Signature", face)
    return page


def timetables(typeface: Typeface) -> Iterator[Image.Image]:
    """Timetables of 40 lines, of one form and with other times."""
    face = typeface(15)
    for line in range(40):
        page, lot = _blank(_DPI), Random(f"timetable {line}")
        draw = ImageDraw.Draw(page)
        _write(page, (80, 60), f"Line {line + 1}", typeface(28))
        for row in range(30):
            y = 120 + 32 * row
            if row % 2:
                draw.rectangle((76, y - 6, 750, y + 25), "#e8eef4")
            _write(page, (80, y), _TOWNS[row % len(_TOWNS)], face)
            for column in range(8):
                _write(page, (220 + 66 * column, y), f"{6 + 2 * column:02d}:{lot.randrange(60):02d}", face)
        yield page


def _blank(dpi: int) -> Image.Image:
    return Image.new("RGB", (round(_A4[0] * dpi), round(_A4[1] * dpi)), "white")


def _column(layout: Layout, number: int) -> tuple[float, float, float, float]:
    """The box of a column, in pixels; between two columns is a third of a margin."""
    margin, gutter = _MARGIN * layout.dpi, _MARGIN * layout.dpi / 3
    width = (_A4[0] * layout.dpi - 2 * margin - (layout.columns - 1) * gutter) / layout.columns
    left = margin + number * (width + gutter)
    return left, margin, left + width, _A4[1] * layout.dpi - margin


def _write(page: Image.Image, where: tuple[float, float], text: str, face: Face) -> None:
    ImageDraw.Draw(page).text(where, text, "black", face)
