"""The time that this machine's cores need for a library's vectors, estimated from the stated speeds of backbones."""

import os

from stages.backbone.catalogue import find
from stages.datum.text_format import counted

_SIZE, _CORES = 224, 2
"""The size of pictures and the cores for which the catalogue states the speed of a backbone."""

_PREPARED = 60.0
"""Pictures a second that one core decodes and scales."""


def time(pictures: int, backbone: str, size: int, prepared: bool) -> str:
    """The time in words for pictures of a size in pixels; "" for a backbone whose speed is not known. prepared: the
    pictures are decoded as well."""
    entry = find(backbone)
    if entry is None or entry.rate is None:
        return ""
    cores = len(os.sched_getaffinity(0))
    seconds = pictures / entry.rate * (size / _SIZE) ** 2 * _CORES / cores
    return _words(seconds + (pictures / (_PREPARED * cores) if prepared else 0.0))


def _words(seconds: float) -> str:
    if seconds < 60:
        return f"about {10 * (int(seconds) // 10 + 1)} s"
    if seconds < 3600:
        return f"about {int(seconds / 60) + 1} min"
    return f"about {counted(int(seconds / 3600) + 1, 'hour', 'hours')}"
