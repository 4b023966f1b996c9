"""STL-10's pictures, real or generated, as the stages see them: in blocks as `lookalike add` puts them, and in the
packs that preprocess makes of the blocks. Knows no model and no search."""

import contextlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.kit.stl10_pieces import write_stl10
from benchmarks.races import original
from pipelines.library.datasets import stl10
from pipelines.library.datasets.stl10 import Stl10Split
from pipelines.library.picture_sources import PictureSource
from stages import preprocess
from stages.datum.contract import Datum, DatumInput
from stages.files import blocks, pack_tables
from stages.files.blocks import ByteRange
from stages.files.packs import Pack, read_pack

_SHARE = 0.9  # of the library
_SEED = 0


def split(place: Path, count: int, data_dir: Path | None) -> Stl10Split:
    """`count` unlabelled pictures, a tenth of them queries, from STL-10's files in `data_dir`, or from files that are
    generated in `place`."""
    found = stl10.find(data_dir) if data_dir is not None else None
    if found is None:
        found = place / "stl10"
        write_stl10(found, count, (1, 1))
    whole = stl10.split(found, _SHARE, _SEED)
    queries = count // 10
    return Stl10Split(whole.library[: count - queries], whole.queries[:queries])


def write_library(sources: Sequence[PictureSource], place: Path, packs: Path) -> None:
    """Writes pictures to a directory in blocks, and what preprocess makes of each to packs/library/<part> and
    packs/thumbnails/<bucket>."""
    stage = preprocess.start(original.parameters("preprocess"))
    for block in _in_blocks(sources, place / "images"):
        process(stage, packs, DatumInput("images", block, block.name, ""))


def write_queries(sources: Sequence[PictureSource], place: Path, packs: Path) -> None:
    """The same for queries, as one entry, which is one datum: packs/queries/<entry>."""
    directory = place / "queries" / stl10.ENTRY
    for _ in _in_blocks(sources, directory):
        pass
    stage = preprocess.start(original.parameters("preprocess-queries"))
    process(stage, packs, DatumInput("queries", directory, stl10.ENTRY, ""))


def parts(packs: Path) -> Iterator[list[Pack]]:
    """The packs of each of the library's parts."""
    for part in sorted((packs / "library").iterdir()):
        yield [read_pack(pack) for pack in pack_tables.paths(part)]


def process(stage: Callable[[Datum], None], out: Path, *inputs: DatumInput) -> None:
    """Has a stage process one datum, its output on the terminal suppressed."""
    with contextlib.redirect_stdout(io.StringIO()):
        stage(Datum({each.name: each for each in inputs}, out))


def write_block(directory: Path, spans: Mapping[str, ByteRange]) -> Path:
    """Writes the block of these pictures, given by true name, into a directory."""
    block = blocks.block(spans)
    path = directory / block.name
    with path.open("wb") as file:
        file.writelines(block.pieces())
    return path


def _in_blocks(sources: Sequence[PictureSource], directory: Path) -> Iterator[Path]:
    directory.mkdir(parents=True)
    spans = {source.name: source.span for source in sources}
    for each in blocks.cut(spans):
        yield write_block(directory, each)
