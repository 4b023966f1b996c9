"""The places of pictures at one commit: the file that holds a picture of a true name, the pack that preprocess made of
it, and the commit that put it there. Knows no index and no answers."""

import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

import numpy as np
from PIL import Image

from pipelines.client.lineage import Lineage
from pipelines.client.stored_file import StoredFile
from pipelines.library.snapshots import FETCHED
from stages.files import coded_pictures, pack_tables
from stages.files.pack_tables import PackRow
from stages.record import block_names, masks, part_names, picture_containers
from stages.record.framing import PictureSquare, unpadded
from stages.record.pfs_names import is_block

_SIDE = 160
"""The longer edge, in pixels, of a picture in a trace; twice that of its place on the page."""


class PackFile:
    """A pack of preprocess at a commit. Raises ValueError for a file that is not one."""

    def __init__(self, lineage: Lineage, file: StoredFile) -> None:
        self.file = file
        self._lineage = lineage
        self._table = pack_tables.read_table(partial(lineage.read, file))

    def row(self, id_: str) -> PackRow | None:
        """The picture with this id."""
        return next((each for each in self._table.rows if each.id == id_), None)

    def thumbnail(self, row: PackRow) -> bytes:
        """A picture as a small JPEG file, without its padding."""
        content, side = self._lineage.read(self.file, row.begin, row.length), self._table.side
        if self._table.raw:
            framed = PictureSquare(np.frombuffer(content, np.uint8).reshape(side, side, 3), row.size)
        else:
            framed = coded_pictures.decode(content, row.size, side)
        picture = Image.fromarray(np.ascontiguousarray(unpadded(framed)))
        picture.thumbnail((_SIDE, _SIDE), Image.Resampling.LANCZOS)
        file = io.BytesIO()
        picture.save(file, "JPEG", quality=80)
        return file.getvalue()


_MOST_VERSIONS = 200
"""Most versions of a block that are looked at for the commit that put a picture into it."""


@dataclass(frozen=True, slots=True)
class PictureFile:
    """A file in `images` or `queries`, and the member of it that is the picture, "" for all of it."""

    file: StoredFile
    member: str = ""

    @property
    def datum_path(self) -> str:
        """The top-level entry that it is in, as preprocess sees it."""
        return self.file.name.partition("/")[0]

    @property
    def in_block(self) -> bool:
        """Whether it is in a block of an earlier version, whose members came and went one by one."""
        return is_block(self.file.path) and block_names.is_earlier(self.file.path)


@dataclass(frozen=True, slots=True)
class PackMember:
    """A picture in a pack of preprocess, which belongs to a part: a directory in the library, else "" ."""

    part: str
    pack: PackFile
    row: PackRow


class PictureFiles:
    """The places of pictures in one repo at a commit set. `above` is the PFS name of the entry of `queries` to look in,
    "" for the library."""

    def __init__(self, lineage: Lineage, repo: str, pipeline: str, at: str, above: str = "") -> None:
        self._lineage = lineage
        self._repo = repo
        self._pipeline = pipeline
        self._at = at
        self._above = above
        self._directory = f"/{above}" if above else ""
        self._packs: dict[StoredFile, PackFile] = {}
        self._lists: dict[StoredFile, frozenset[str]] = {}

    def find(self, name: str, picture: str, buckets: int) -> tuple[PictureFile, PackMember] | None:
        """The file that a picture of this true name and id is in, and its pack; None if there is none."""
        for place in self._holders(name):
            for part, path in self._paths(place, picture, buckets):
                packed = self._packed(self._at, part, path, picture)
                if packed is not None and any(each.path == name for each in packed.row.sources):
                    return place, packed
        return None

    def put_by(self, place: PictureFile, sha256: str, picture: str) -> tuple[str, bool]:
        """The id of the commit that put a picture, not counting later ones that put the same bytes again, and whether
        that is certain: not if the packs of earlier versions of its block cannot be read."""
        if not place.in_block:
            made, known = self._oldest(place, lambda commit: self._is_same(place.file, commit))
            return max(made, self._shown_by(place), key=partial(self._start, place)), known
        last, known = self._oldest(place, lambda commit: self._held(commit, place, sha256, picture))
        if not known:
            return last, False
        before = None if self._above else self._before_division(last, place)  # the block itself was new
        if before is not None and self._held(before.file.commit, before, sha256, picture):
            return self.put_by(before, sha256, picture)
        return last, True

    def _shown_by(self, place: PictureFile) -> str:
        """The newest commit since which a block does not hide a picture any more; "" for none."""
        path, last = masks.path(place.datum_path), ""
        for commit in self._lineage.writers(masks.REPO, path, self._at) if place.member and not self._above else ():
            mask = self._lineage.file(masks.REPO, path, commit)
            if mask is not None and place.member in masks.parse(self._lineage.read(mask)):
                return last
            last = commit
        return ""

    def _start(self, place: PictureFile, commit: str) -> float:
        made = self._lineage.commit(place.file.repo, commit) if commit else None
        return 0.0 if made is None else made.started.timestamp()

    def _oldest(self, place: PictureFile, has: Callable[[str], bool | None]) -> tuple[str, bool]:
        """The oldest of the commits in a row, from the newest backwards, that have something in a file, and whether
        that is known of the one before it. `has` is None if it is not known of a commit."""
        last = place.file.commit
        for commit in islice(self._lineage.writers(place.file.repo, place.file.path, last), _MOST_VERSIONS):
            if not has(commit):
                break
            last = commit
        # The content of a squashed commit is that of its child, which is not one of the writers.
        for _ in range(_MOST_VERSIONS):
            made = self._lineage.commit(place.file.repo, last)
            held = has(made.parent) if made is not None and made.parent else False
            if made is None or not held:
                return last, held is not None
            last = made.parent
        return last, False

    def _is_same(self, file: StoredFile, commit: str) -> bool:
        """Whether a file had the same content at an earlier commit."""
        found = self._lineage.file(file.repo, file.path, commit)
        return found is not None and found.hash == file.hash

    def _held(self, commit: str, place: PictureFile, sha256: str, picture: str) -> bool | None:
        """Whether a block held this picture at a commit of its repo; None if that is not known."""
        if self._lineage.commit(self._pipeline, commit) is None:
            return None
        for part, path in self._paths(place, picture, part_names.BUCKETS):
            packed = self._packed(commit, part, path, picture)
            if packed is not None:
                return any((each.path, each.sha256) == (place.member, sha256) for each in packed.row.sources)
        return False

    def _before_division(self, commit: str, place: PictureFile) -> PictureFile | None:
        """The block of an earlier version that a picture was in before a commit divided or joined blocks."""
        made = self._lineage.commit(self._repo, commit)
        if made is None or not made.parent:
            return None
        found = {each.name: each for each in self._blocks(made.parent) if block_names.is_earlier(each.path)}
        home = block_names.home(place.member, found)
        return PictureFile(found[home], place.member) if home not in (None, place.file.name) else None

    def _holders(self, name: str) -> Iterator[PictureFile]:
        """The places in which a picture of this name can be."""
        blocks = {each.path: each for each in self._blocks(self._at)}
        for path, member in picture_containers.possible(name, partial(self._blocks_of, blocks.values())):
            found = blocks.get(path) or self._lineage.file(self._repo, path, self._at)
            if found is not None and not found.is_directory:
                yield PictureFile(found, member)

    def _blocks(self, at: str) -> list[StoredFile]:
        repos = (self._repo,) if self._above else (self._repo, FETCHED)
        found = (each for repo in repos for each in self._lineage.files(repo, f"{self._directory}/%block-*", at))
        return [each for each in found if is_block(each.path)]

    def _blocks_of(self, blocks: Iterable[StoredFile], name: str) -> Iterator[str]:
        """The paths of those of these blocks that can hold a picture of this name, and do not hide it."""
        by_name = {each.path.rpartition("/")[2]: each for each in blocks}
        home = block_names.home(name, {each for each in by_name if block_names.is_earlier(each)})
        for block, file in by_name.items():
            holds = block == home if block_names.is_earlier(block) else name in self._names(file)
            if holds and name not in self._hidden(block):
                yield file.path

    def _names(self, block: StoredFile) -> frozenset[str]:
        """The names on the list of a block."""
        if block not in self._lists:
            listed = block_names.read_list(lambda most: self._lineage.read(block, most=most))
            self._lists[block] = frozenset(each.path for each in listed or ())
        return self._lists[block]

    def _hidden(self, block: str) -> frozenset[str]:
        """The names that a block of the library hides."""
        found = None if self._above else self._lineage.file(masks.REPO, masks.path(block), self._at)
        return frozenset() if found is None else masks.parse(self._lineage.read(found))

    def _paths(self, place: PictureFile, picture: str, buckets: int) -> Iterator[tuple[str, str]]:
        """The parts in which a picture of a file can be, with the paths of its pack in them."""
        source = part_names.source_name(place.datum_path)
        for suffix in (pack_tables.SUFFIX, pack_tables.FORMER_SUFFIX):
            if self._above:
                yield "", f"/queries/{self._above}/{source}{suffix}"
                continue
            for part in part_names.possible(source, picture, buckets):
                yield part, f"/library/{part}/{source}{suffix}"

    def _packed(self, at: str, part: str, path: str, picture: str) -> PackMember | None:
        file = self._lineage.file(self._pipeline, path, at)
        if file is None:
            return None
        try:
            pack = self._packs.get(file) or PackFile(self._lineage, file)
        except ValueError:  # not a pack
            return None
        self._packs[file] = pack
        row = pack.row(picture)
        return None if row is None else PackMember(part, pack, row)
