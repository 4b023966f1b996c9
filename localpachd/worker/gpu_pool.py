"""The machine's GPUs and their holders: a pool of leases. Knows no pipelines, only the names that holders give."""

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

_PROBE_SECONDS = 20


class GpuPool:
    """Leases of GPUs. `strict` behaves as a cluster does: work that asks for more GPUs than the machine has never runs.

    Otherwise such work gets none and runs on the CPU. Thread-safe.
    """

    def __init__(self, devices: tuple[str, ...] = (), strict: bool = False) -> None:
        self.devices = devices
        self.strict = strict
        self._changed = threading.Condition()
        self._free = list(devices)
        self._holders: dict[str, str] = {}

    def schedulable(self, count: int) -> bool:
        """Whether work that needs `count` GPUs can ever run here."""
        return not self.strict or count <= len(self.devices)

    def leased(self, count: int) -> int:
        """The number of GPUs for work that asks for `count`: all of them or, if the machine has fewer, none."""
        return count if count <= len(self.devices) else 0

    def holders(self) -> Mapping[str, str]:
        """The holder of each device, by device; free devices are absent."""
        with self._changed:
            return dict(self._holders)

    @contextmanager
    def lease(
        self, holder: str, count: int, check: Callable[[], None], waiting: Callable[[str], None]
    ) -> Iterator[tuple[str, ...]]:
        """Holds `leased(count)` devices while the context lasts.

        Waits until they are free, passing their holders to `waiting` once. To end the wait, let `check` raise and call
        `notify`.
        """
        wanted = self.leased(count)
        devices = self._take(holder, wanted, check, patient=False)
        if devices is None:
            waiting(", ".join(f"GPU {device}: {name}" for device, name in sorted(self.holders().items())))
            devices = self._take(holder, wanted, check, patient=True)
        assert devices is not None
        try:
            yield devices
        finally:
            with self._changed:
                self._free = [device for device in self.devices if device in {*self._free, *devices}]
                for device in devices:
                    del self._holders[device]
                self._changed.notify_all()

    def _take(self, holder: str, wanted: int, check: Callable[[], None], patient: bool) -> tuple[str, ...] | None:
        with self._changed:
            while len(self._free) < wanted:
                check()
                if not patient:
                    return None
                self._changed.wait()
            devices = tuple(self._free[:wanted])
            del self._free[:wanted]
            self._holders.update(dict.fromkeys(devices, holder))
            return devices

    def notify(self) -> None:
        """Makes every thread that waits for a device check again whether to continue waiting."""
        with self._changed:
            self._changed.notify_all()


def visible(devices: tuple[str, ...]) -> dict[str, str]:
    """The variables that show a process these devices and no others; without devices it sees no GPU at all."""
    return {"CUDA_VISIBLE_DEVICES": ",".join(devices), "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}


def detect(wanted: str = "auto") -> tuple[str, ...]:
    """The devices that a server may lease: all that nvidia-smi(1) shows, or the first `wanted` of them.

    Devices hidden by CUDA_VISIBLE_DEVICES are not counted. A number is trusted where nvidia-smi is absent. Raises
    ValueError when `wanted` is neither "auto" nor a number, or more than the machine has.
    """
    if wanted != "auto" and not wanted.isdecimal():
        raise ValueError(f"the number of GPUs must be auto or a number, not {wanted}")
    if shutil.which("nvidia-smi") is None:
        return () if wanted == "auto" else tuple(str(number) for number in range(int(wanted)))
    found = _listed()
    if wanted == "auto":
        return found
    if int(wanted) > len(found):
        raise ValueError(f"{wanted} GPUs were asked for, but nvidia-smi shows {len(found)}")
    return found[: int(wanted)]


def _listed() -> tuple[str, ...]:
    command = ["nvidia-smi", "--query-gpu=index,uuid", "--format=csv,noheader"]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):  # without an answer from the driver, no device can be leased
        return ()
    # Programs of CUDA make missing device files by one with root's rights, which user code does not get.
    if shutil.which("nvidia-modprobe") is not None:
        subprocess.run(["nvidia-modprobe", "-u", "-c=0"], capture_output=True, timeout=_PROBE_SECONDS, check=False)
    found = [tuple(part.strip() for part in line.split(",")) for line in asked.stdout.splitlines() if "," in line]
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    if shown is None:
        return tuple(index for index, _ in found)
    named = [name.strip() for name in shown.split(",")]
    return tuple(index for index, uuid in found if any(name == index or uuid == name for name in named))
