"""The instruction sets of this machine's processor. Knows no vectors."""

from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")


def flags(cpuinfo: Path = CPUINFO) -> set[str]:
    """The processor's instruction sets, by Linux's names on x86; none if the system does not list them."""
    if not cpuinfo.is_file():
        return set()
    line = cpuinfo.read_text(errors="replace").partition("flags")[2].partition("\n")[0]
    return set(line.partition(":")[2].split())
