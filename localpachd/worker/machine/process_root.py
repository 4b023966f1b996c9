"""A root directory for processes, assembled from bind mounts of the entries of `/` and of directories to be added.
Where the machine has a `/pfs` to mount on and nothing is added, the machine's own root serves.

Makes the mount points and the list of mounts; mounts nothing.
"""

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from localpachd.worker.machine.machine_view import TMP, MachineView, line

_CROWD = 1000
"""The number of entries above which a directory is not mounted entry by entry."""


class MountProblem(Exception):
    """A directory cannot be mounted at the place it is meant for; the text is the reason."""


def build(root: Path, mounts: Mapping[str, Path], view: MachineView, rebuild: bool) -> None:
    """Writes the list of the mounts that make processes see `view` to the fstab(5) beside `root`. With `rebuild`, fills
    `root` with mount points for the entries of `/` and for `mounts`, each a directory to be seen under a name. Raises
    MountProblem."""
    fstab, temporary = root.with_name(root.name + ".fstab"), root.with_name(root.name + ".tmp")
    if fstab.exists():
        return
    if not rebuild:
        fstab.write_text("".join(view.mounts("", temporary)))
        return
    resolved = {Path(name).resolve(): source for name, source in mounts.items()}
    in_tmp = {target: source for target, source in resolved.items() if TMP in target.parents}
    targets = {target: source for target, source in resolved.items() if target not in in_tmp}
    remade = {Path("/")}
    for target in targets:
        remade |= _remade(target)
    (root / ".old").mkdir()
    (root / "pfs").mkdir()
    # An entry that vanishes before it is mounted is no loss.
    lines = [line(*pair, ",nofail") for directory in sorted(remade) for pair in _places(directory, root, remade)]
    for target, source in targets.items():
        place = root / target.relative_to("/")
        if not target.exists():
            place.mkdir(parents=True, exist_ok=True)
        lines.append(line(source, place))
    lines += view.mounts(str(root), temporary)
    for target, source in in_tmp.items():
        (temporary / target.relative_to(TMP)).mkdir(parents=True, exist_ok=True)
        lines.append(line(source, root / target.relative_to("/")))
    fstab.write_text("".join(lines))


def _remade(target: Path) -> set[Path]:
    """The directories that must be remade so that `target` exists: those above it, or none if it exists already."""
    if target.is_dir():
        return set()
    above = [each for each in target.parents if each.exists()]
    if target.exists() or not above[0].is_dir():
        raise MountProblem(f"{target} cannot be a directory: {target if target.exists() else above[0]} is a file")
    for each in above:
        with os.scandir(each) as entries:
            if sum(1 for _ in entries) > _CROWD:
                raise MountProblem(f"{target} does not exist, and {each} has too many entries to add it: make it first")
    return set(above)


def _places(directory: Path, root: Path, remade: set[Path]) -> Iterator[tuple[Path, Path]]:
    """Makes mount points for a directory's entries below `root`; yields each entry with its mount point, except for
    those that are `remade` themselves."""
    with os.scandir(directory) as entries:
        for entry in entries:
            path = Path(entry.path)
            place = root / path.relative_to("/")
            if os.path.lexists(place):
                continue
            with contextlib.suppress(FileNotFoundError):  # it may vanish meanwhile
                if entry.is_symlink():
                    place.symlink_to(path.readlink())
                    continue
                if entry.is_dir():
                    place.mkdir()
                else:
                    place.touch()
                if path in remade:
                    _resemble(place, entry.stat())
                else:
                    yield path, place


def _resemble(place: Path, found: os.stat_result) -> None:
    """Gives a directory the permissions and the owner of the one that it stands in for."""
    place.chmod(stat.S_IMODE(found.st_mode))
    if os.geteuid() == 0:
        os.chown(place, found.st_uid, found.st_gid)
