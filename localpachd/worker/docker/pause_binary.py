"""The pause binary, which keeps a container running between commands by doing nothing.

An image need not contain any program (not even a shell), so this one is written beside it. Knows nothing else.
"""

import struct
from pathlib import Path

# Process 1 ignores SIGCHLD, so that the kernel itself reaps orphans, and then sleeps.
_CODE = {
    "x86_64": (
        62,  # the machine's number in ELF
        "6a00 6a00 6a00 6a01"  # push 0 (sa_mask), 0 (sa_restorer), 0 (sa_flags), 1 (sa_handler: SIG_IGN)
        "4889e6 31d2 6a08 415a"  # rsi = that; edx = 0; r10 = 8, the size of a mask
        "6a11 5f 6a0d 58 0f05"  # edi = SIGCHLD; rt_sigaction
        "6a22 58 0f05 ebf9",  # pause, again and again
    ),
    "aarch64": (
        183,
        "210080d2 e17fbea9 ff7f01a9"  # the same struct on the stack
        "200280d2 e1030091 020080d2 030180d2 c81080d2 010000d4"  # rt_sigaction(SIGCHLD, sp, 0, 8)
        "000080d2 010080d2 020080d2 030080d2 040080d2"  # ppoll(0, 0, 0, 0, 0)
        "280980d2 010000d4 f9ffff17",  # again and again
    ),
}
_NAMES = {"amd64": "x86_64", "arm64": "aarch64"}
_BASE = 0x400000
_HEADERS = 64 + 56


def write(path: Path, architecture: str) -> None:
    """Writes the program for an engine's architecture. Raises KeyError for an unsupported one."""
    machine, listing = _CODE[_NAMES.get(architecture, architecture)]
    code = bytes.fromhex(listing)
    size = _HEADERS + len(code)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)  # 64 bits, little-endian, version 1
    head = struct.pack("<HHIQQQIHHHHHH", 2, machine, 1, _BASE + _HEADERS, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, size, size, 0x1000)  # to be loaded, read and run
    path.write_bytes(ident + head + segment + code)
    path.chmod(0o755)


def runs_on(architecture: str) -> bool:
    """Whether `write` supports an engine's architecture."""
    return _NAMES.get(architecture, architecture) in _CODE
