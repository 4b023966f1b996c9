"""The pictures of a directory as lookalike's pipelines keep them, and the copies that its own rules find among them.
Judges nothing."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from stages.datum.contract import DatumInput, StageError
from stages.decode.decoder_processes import DecoderProcesses
from stages.decode.distinct_pictures import DistinctPictures
from stages.decode.picture_reader import DecodedPicture, read
from stages.files import coded_pictures
from stages.knn.hash_index import HashIndex
from stages.knn.vector_set import VectorSet
from stages.neighbours import MOST_PAIRS
from stages.quality.copy_groups import CopyCandidates
from stages.quality.copy_pairs import RadiusLimits, RadiusPairs, SegmentPictures, confirm_pairs, pairs_within
from stages.record.framing import PAD, Framing, Pixels
from studies.sets.pooled import POOLINGS, unit
from studies.sets.ways import DEFAULT, Vectors

_SPEC = Path(__file__).parents[2] / "specs" / "duplicates" / "neighbours.json"
_PARAMETERS: dict[str, str] = json.loads(_SPEC.read_text())["transform"]["env"]
_BITS = int(_PARAMETERS["HASH_BITS"])
_BATCH = 256  # pictures embedded at once

Embed = Callable[[Pixels], NDArray[np.float32]]

NOTHING = RadiusPairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros(0, np.uint8))
"""No pairs."""


class Album(NamedTuple):
    """n pictures, by id. side: their sources, hashes and thumbnails. vectors: float32 (n, d), of no numbers without a
    backbone."""

    ids: tuple[str, ...]
    side: SegmentPictures
    vectors: NDArray[np.float32]


def default_backbone(scratch: Path) -> Embed:
    """From pictures, uint8 (n, S, S, 3), to their vectors; it is made in this directory."""
    backbone = Vectors(scratch).backbone(DEFAULT.backbone, DEFAULT.size)
    return lambda pixels: unit(backbone(pixels)[POOLINGS.index(DEFAULT.pooling)])


def opened(directory: Path, embed: Embed | None = None) -> Album:
    """The pictures in the files of a directory. Raises StageError for a file that is refused."""
    with DistinctPictures() as distinct, DecoderProcesses() as decoders:
        for each in read(DatumInput("images", directory, "", ""), Framing(DEFAULT.size, PAD), decoders):
            if not isinstance(each, DecodedPicture):
                raise StageError(f"{each.path}: {each.reason}")
            distinct.add(each.source, each.framed, each.coded, each.thumbnail, each.identity)
        pictures = distinct.pictures()
        vectors = np.zeros((len(pictures), 0), np.float32)
        if embed:
            coded = zip(distinct.coded(pictures), pictures, strict=True)
            squares = (coded_pictures.decode(each, picture.size, DEFAULT.size).pixels for each, picture in coded)
            vectors = np.concatenate([embed(each) for each in _batches(squares)])
        hashes = np.array([each.perceptual_hash for each in pictures], np.uint64)
        side = SegmentPictures(
            directory.name, [each.sources for each in pictures], hashes, list(distinct.thumbnails(pictures))
        )
    return Album(tuple(each.id for each in pictures), side, vectors)


def candidates(album: Album) -> RadiusPairs:
    """The pairs of different pictures within THRESHOLD and HASH_BITS, each once."""
    points = VectorSet(album.vectors)
    proposed = HashIndex(album.side.hashes, _BITS).pairs(album.side.hashes, after=True)
    limits = RadiusLimits(float(_PARAMETERS["THRESHOLD"]), _BITS, 2 * MOST_PAIRS)
    return pairs_within(proposed, lambda: (points, points), limits)


def only(pairs: RadiusPairs, kept: NDArray[np.bool_]) -> RadiusPairs:
    """Some of the pairs."""
    return RadiusPairs(pairs.queries[kept], pairs.rows[kept], pairs.distances[kept], pairs.bits[kept])


def copies(album: Album, proposed: RadiusPairs = NOTHING) -> CopyCandidates:
    """The near pairs among the proposed ones, and every picture of several files with itself, as `duplicates` gets
    them."""
    several = np.flatnonzero([len(sources) > 1 for sources in album.side.sources])
    both = RadiusPairs(
        np.concatenate([proposed.queries, several]),
        np.concatenate([proposed.rows, several]),
        np.concatenate([proposed.distances, np.zeros(len(several), np.float32)]),
        np.concatenate([proposed.bits, np.zeros(len(several), np.uint8)]),
    )
    with redirect_stdout(sys.stderr):  # the progress
        found = confirm_pairs(both, album.side, album.side, _BITS)
    queries, rows, distances, bits = found.pairs
    first, second = queries.astype(np.int32), rows.astype(np.int32)
    return CopyCandidates(album.ids, album.side.sources, first, second, distances, bits, found.turns, found.near)


def near_paths(found: CopyCandidates) -> Iterator[tuple[str, str]]:
    """The files of each near pair, each pair once; files of one picture that are not exact copies are near ones."""
    for first, second in zip(found.first[found.near].tolist(), found.second[found.near].tolist(), strict=True):
        for at, one in enumerate(found.sources[first]):
            for other in found.sources[second][at + 1 if first == second else 0 :]:
                if one.content != other.content:
                    yield one.path, other.path


def _batches(squares: Iterator[Pixels]) -> Iterator[Pixels]:
    while batch := list(islice(squares, _BATCH)):
        yield np.stack(batch)
