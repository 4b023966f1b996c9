"""The pool of GPUs: leases, waiting for one, and the devices that processes see."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from localpachd.worker import gpu_pool
from localpachd.worker.datum_set_watch import CancellationError, DatumSetWatch
from localpachd.worker.gpu_pool import GpuPool
from localpachd.worker.tasks import CancelToken, LogLine
from tests.localpachd.worker.bench import Bench


def _nothing(*_: object) -> None:
    pass


def test_leases_are_exclusive_and_given_back() -> None:
    pool = GpuPool(("0", "1", "2"))
    with pool.lease("a", 2, _nothing, _nothing) as first, pool.lease("b", 1, _nothing, _nothing) as second:
        assert (first, second) == (("0", "1"), ("2",))
        assert pool.holders() == {"0": "a", "1": "a", "2": "b"}
    assert pool.holders() == {}
    with pool.lease("c", 3, _nothing, _nothing) as all_of_them:
        assert all_of_them == ("0", "1", "2")


def test_a_lease_waits_its_turn_and_names_the_holders() -> None:
    pool = GpuPool(("0",))
    waits: list[str] = []
    got: list[tuple[str, ...]] = []
    waiting = threading.Event()

    def wait(holders: str) -> None:
        waits.append(holders)
        waiting.set()

    def second() -> None:
        with pool.lease("second", 1, _nothing, wait) as devices:
            got.append(devices)

    thread = threading.Thread(target=second)
    with pool.lease("first", 1, _nothing, _nothing):
        thread.start()
        waiting.wait()
        assert got == []
    thread.join()
    assert (waits, got) == (["GPU 0: first"], [("0",)])


def test_a_cancelled_wait_ends() -> None:
    pool = GpuPool(("0",))
    token = CancelToken()
    with (
        pool.lease("first", 1, _nothing, _nothing),
        DatumSetWatch(token, pool.notify) as watch,
        pytest.raises(CancellationError),
        pool.lease("second", 1, watch.check, lambda _: token.cancel()),
    ):
        raise AssertionError("there was nothing to lease")
    assert pool.holders() == {}


def test_work_that_a_machine_can_run() -> None:
    assert GpuPool().schedulable(1)
    assert GpuPool().leased(1) == 0
    assert not GpuPool(strict=True).schedulable(1)
    assert GpuPool(strict=True).schedulable(0)
    assert GpuPool(("0",), strict=True).schedulable(1)
    assert not GpuPool(("0",), strict=True).schedulable(2)


def test_processes_see_their_lease_and_no_other_gpu(at_home: Bench) -> None:
    at_home.runner._gpus = GpuPool(("4", "7"))
    script = 'echo "$CUDA_VISIBLE_DEVICES|$CUDA_DEVICE_ORDER"'
    at_home.one(at_home.sh(script, gpus=2))
    at_home.one(at_home.sh(script))
    at_home.one(at_home.sh(script, gpus=3))
    at_home.one(at_home.sh(script, env={"CUDA_VISIBLE_DEVICES": "mine"}))
    assert at_home.said() == ["4,7|PCI_BUS_ID", "|PCI_BUS_ID", "|PCI_BUS_ID", "mine|PCI_BUS_ID"]
    told = [line for line in at_home.said(user=False) if "CPU" in line]
    assert told == ["3 GPUs are asked for and this machine has 2: running on the CPU"]


def test_a_set_that_waits_for_a_gpu_can_be_cancelled(at_home: Bench) -> None:
    pool = at_home.runner._gpus = GpuPool(("0",))
    token = CancelToken()

    def log(line: LogLine) -> None:
        if "waiting for 1 of this machine's GPUs (GPU 0: somebody)" in line.message:
            token.cancel()

    with pool.lease("somebody", 1, _nothing, _nothing):
        at_home.runner.run_set(at_home.sh("true", gpus=1), [at_home.datum()], at_home.results.append, log, token)
    assert at_home.results == []


_SMI = """#!/bin/sh
[ "$*" = "--query-gpu=index,uuid --format=csv,noheader" ] || exit 9
echo "0, GPU-aaaa"
echo "1, GPU-bbbb"
"""


@pytest.fixture
def two_gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine whose nvidia-smi shows two GPUs."""
    program = tmp_path / "nvidia-smi"
    program.write_text(_SMI)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return monkeypatch


def test_devices_come_from_nvidia_smi(two_gpus: pytest.MonkeyPatch) -> None:
    assert gpu_pool.detect() == ("0", "1")
    assert gpu_pool.detect("1") == ("0",)
    assert gpu_pool.detect("0") == ()
    with pytest.raises(ValueError, match="3 GPUs were asked for, but nvidia-smi shows 2"):
        gpu_pool.detect("3")
    with pytest.raises(ValueError, match="auto or a number"):
        gpu_pool.detect("many")


@pytest.mark.parametrize(("shown", "expected"), [("1", ("1",)), ("GPU-aaaa", ("0",)), ("", ()), ("1,0", ("0", "1"))])
def test_hidden_devices_are_not_counted(two_gpus: pytest.MonkeyPatch, shown: str, expected: tuple[str, ...]) -> None:
    two_gpus.setenv("CUDA_VISIBLE_DEVICES", shown)
    assert gpu_pool.detect() == expected


def test_without_nvidia_smi_a_number_is_believed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu_pool.detect() == ()
    assert gpu_pool.detect("2") == ("0", "1")


@pytest.mark.usefixtures("two_gpus")
def test_device_files_of_cuda_are_made_before_user_code_runs(tmp_path: Path) -> None:
    program = tmp_path / "nvidia-modprobe"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\n')
    program.chmod(0o755)
    assert gpu_pool.detect() == ("0", "1")
    assert (tmp_path / "asked").read_text() == "-u -c=0\n"
