"""How well copies of pictures are found, beside imagededup: `python -m studies.copies --help`."""

import argparse
import hashlib
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from PIL import Image

from benchmarks.kit import program, report
from stages.datum.contract import StageError
from stages.quality.copy_groups import exact_groups, removable
from studies.duplicates import albums, families, finders, lookalikes
from studies.duplicates.families import CHANGES, Base, Member
from studies.duplicates.finders import Finder
from studies.duplicates.lookalikes import LookalikeSet
from studies.duplicates.rewritings import EQUAL, UNEQUAL, Rewriting
from studies.duplicates.verdicts import Judged, judge
from studies.kit import wheels
from studies.kit.environment import Unavailable
from studies.sets import drawings, photographs

PACKAGES = ("numpy", "pillow", "tensorflow", "keras", "scikit-image")
PHOTOGRAPHS, DRAWINGS = "photographs", "drawings"
HALVES = "chosen on", "judged"

_REWRITTEN = 8  # of each set, at most
_WIDEST = 800  # pixels of what is rewritten
_EXAMPLES = 3  # wrong pairs of a set that are named


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures and prints the tables; 1 if the wheels or imagededup cannot be had."""
    given = _parse(arguments)
    program.exit_on_sigterm()
    surroundings, used, code = report.machine(), report.versions(PACKAGES), report.commit()
    print(report.place(surroundings, used, code))
    try:
        with tempfile.TemporaryDirectory(prefix="lookalike-") as scratch:
            unpacked = wheels.unpacked(given.wheels or wheels.place(os.environ))
            for section in given.sections:
                for line in _SECTIONS[section](unpacked, Path(scratch), given):
                    print(line, flush=True)
    except (Unavailable, StageError, OSError) as error:
        print(f"studies.copies: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    return 0


def _changes(wheels_: Path, scratch: Path, given: argparse.Namespace) -> Iterator[str]:
    bases = {name: each[: given.originals] for name, each in _bases(wheels_).items()}
    directory = scratch / "pictures"
    directory.mkdir()
    members = families.write([base for each in bases.values() for base in each], directory)
    names = [name for name, each in bases.items() for _ in each]
    print(f"{len(members)} pictures: lookalike ...", file=sys.stderr, flush=True)
    found = [finders.ours(members, albums.default_backbone(scratch / "backbones"))]
    if not given.alone:
        print("imagededup ...", file=sys.stderr, flush=True)
        environment = given.environment or finders.place(os.environ)
        theirs, version, missing = finders.imagededup([each.path for each in members], environment, scratch)
        found += theirs
        yield f"imagededup {version}"
        yield from (f"imagededup's {name} is left out: {reason}" for name, reason in missing.items())
    yield from changed(found, members, [names[each.family] for each in members])


def _bases(wheels_: Path) -> dict[str, list[Base]]:
    return {
        PHOTOGRAPHS: list(families.tiles(photographs.every(wheels_))),
        DRAWINGS: list(families.drawn(drawings.emoji(wheels_).images)),
    }


def changed(found: Sequence[Finder], members: Sequence[Member], sets: Sequence[str]) -> Iterator[str]:
    """The lines of the tables of changed copies. `sets`: the name of each member's set."""
    halves = np.asarray([HALVES[_half(each.whole)] for each in members])
    verdicts: dict[tuple[str, str], dict[str, Judged]] = {}
    for name in (PHOTOGRAPHS, DRAWINGS):
        for half in HALVES:
            rows = np.flatnonzero((np.asarray(sets) == name) & (halves == half))
            of = [members[row] for row in rows]
            verdicts[name, half] = {finder.name: judge(finder, of, rows) for finder in found}
    for name in (PHOTOGRAPHS, DRAWINGS):
        yield from _by_change(name, verdicts[name, HALVES[1]])
    mistakes = "wrong of a million: parts of a photograph", "unrelated"
    yield from _header("program", "set", "half", "copies", "recall", "precision", *mistakes)
    for finder in found:
        for (name, half), judged in verdicts.items():
            yield _row(finder.name, name, half, *_figures(judged[finder.name]))


def _by_change(name: str, judged: Mapping[str, Judged]) -> Iterator[str]:
    yield from _header(name, *judged)
    for change in CHANGES:
        yield _row(change, *(f"{each.recall(change):.2f}" for each in judged.values()))
    yield _row("all: recall", *(f"{each.recall():.3f}" for each in judged.values()))
    yield _row("all: precision", *(f"{each.precision():.3f}" for each in judged.values()))


def _figures(judged: Judged) -> list[str]:
    copies = sum(map(len, judged.right.values()))
    wrong = (f"{judged.mistakes(near):,.1f}" for near in (True, False))
    return [f"{copies:,}", f"{judged.recall():.3f}", f"{judged.precision():.3f}", *wrong]


def _lookalikes(wheels_: Path, scratch: Path, given: argparse.Namespace) -> Iterator[str]:
    embed = albums.default_backbone(scratch / "backbones")
    captions = "pictures", "pairs", "limits", "candidates", "wrong near pairs", "half of them in other files"
    yield from _header("set", *captions, "wrong files in remove.txt")
    for each in lookalikes.every(wheels_):
        print(f"{each.name} ...", file=sys.stderr, flush=True)
        yield alike(LookalikeSet(each.name, each.pictures[: given.originals], each.chosen), embed)


def alike(of: LookalikeSet, embed: albums.Embed) -> str:
    """The row of a set of pictures that are all different."""
    near, unneeded, proposed = [], 0, 0
    for others in (False, True):
        with tempfile.TemporaryDirectory(prefix="lookalike-") as directory:
            _write(of.pictures, Path(directory), others)
            album = albums.opened(Path(directory), embed)
            pairs = albums.candidates(album)
            found = albums.copies(album, pairs)
        wrong = list(albums.near_paths(found))
        for pair in wrong[:_EXAMPLES]:
            print(f"  wrong: {' and '.join(pair)}", file=sys.stderr)
        near.append(len(wrong))
        unneeded += len(removable(exact_groups(found)))
        proposed = proposed if others else len(pairs.rows)
    count = len(of.pictures)
    numbers = count, count * (count - 1) // 2, proposed, *near, unneeded
    pictures, all_, *others_ = (f"{number:,}" for number in numbers)
    return _row(of.name, pictures, all_, HALVES[not of.chosen], *others_)


def _write(pictures: Sequence[Image.Image], directory: Path, others: bool) -> None:
    """PNG files; with `others` every second picture as another program may have made it of one, a smaller JPEG: then
    neither size nor encoder shows that it was not."""
    for number, picture in enumerate(pictures):
        if others and number % 2:
            size = (max(1, edge * 3 // 4) for edge in picture.size)
            smaller = picture.resize((next(size), next(size)), Image.Resampling.LANCZOS)
            smaller.save(directory / f"{number:04d}.jpg", quality=90)
        else:
            picture.save(directory / f"{number:04d}.png")


def _rewritings(wheels_: Path, _: Path, given: argparse.Namespace) -> Iterator[str]:
    pictures = []
    for bases in _bases(wheels_).values():
        step = max(1, len(bases) // _REWRITTEN)
        for base in bases[::step][: min(given.originals or _REWRITTEN, _REWRITTEN)]:
            base.image.thumbnail((_WIDEST, _WIDEST))
            base.image.info = {}  # a profile, which not all kinds of files can hold
            pictures.append(base.image)
    yield from rewritten(pictures)


def rewritten(pictures: Sequence[Image.Image]) -> Iterator[str]:
    """The lines of the table of exact copies."""
    for caption, rewritings in (("both files show the same", EQUAL), ("the files differ in", UNEQUAL)):
        yield from _header(caption, "pairs", "exact copies")
        for name, rewriting in rewritings.items():
            print(f"{name} ...", file=sys.stderr, flush=True)
            yield _row(name, str(len(pictures)), str(_exact(pictures, rewriting)))


def _exact(pictures: Sequence[Image.Image], rewriting: Rewriting) -> int:
    """Of how many pictures both files are exact copies."""
    with tempfile.TemporaryDirectory(prefix="lookalike-") as directory:
        for number, picture in enumerate(pictures):
            for name, content in zip(("one", "other"), rewriting(picture), strict=True):
                Path(directory, f"{number}-{name}").write_bytes(content)
        return len(exact_groups(albums.copies(albums.opened(Path(directory)))))


def _header(*cells: str) -> list[str]:
    return ["", _row(*cells), f"|{'---|' * len(cells)}"]


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _half(whole: str) -> int:
    """0 for the half of the wholes on which limits are chosen, 1 for the half on which they are judged."""
    return hashlib.sha256(whole.encode()).digest()[0] % 2


_SECTIONS: dict[str, Callable[[Path, Path, argparse.Namespace], Iterator[str]]] = {
    "changes": _changes,
    "lookalikes": _lookalikes,
    "rewritings": _rewritings,
}


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m studies.copies",
        description="Measures how many changed copies of pictures are found, which pictures that only look alike are "
        "taken for copies, and which files are exact copies.",
    )
    parser.add_argument("sections", nargs="*", metavar="TABLE", help=f"{', '.join(_SECTIONS)}; by default all")
    parser.add_argument("--originals", type=program.positive, metavar="N", help="at most so many pictures of each set")
    parser.add_argument("--alone", action="store_true", help="without imagededup")
    parser.add_argument(
        "--environment",
        type=Path,
        metavar="DIR",
        help=f"imagededup's environment, created if missing; by default ${finders.VARIABLE} or the user's cache",
    )
    parser.add_argument(
        "--wheels",
        type=Path,
        metavar="DIR",
        help=f"the unpacked wheels, downloaded if missing; by default ${wheels.VARIABLE} or the user's cache",
    )
    given = parser.parse_args(arguments)
    program.choose(parser, given, list(_SECTIONS))
    return given


if __name__ == "__main__":
    sys.exit(main())
