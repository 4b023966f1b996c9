"""Owns what this machine's processor says of itself. Knows no vectors."""

from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")


def flags(cpuinfo: Path = CPUINFO) -> set[str]:
    """The instructions it has, as Linux names them on x86; none where that is not told."""
    if not cpuinfo.is_file():
        return set()
    line = cpuinfo.read_text(errors="replace").partition("flags")[2].partition("\n")[0]
    return set(line.partition(":")[2].split())
