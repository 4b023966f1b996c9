from pathlib import Path

from stages.knn.cpu_flags import flags


def test_the_flags_of_the_first_core(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor: 0\nflags\t\t: fpu avx2 avx512_vnni\nbugs: many\n\nflags: other\n")
    assert flags(cpuinfo) == {"fpu", "avx2", "avx512_vnni"}


def test_a_machine_that_does_not_list_its_flags(tmp_path: Path) -> None:
    assert flags(tmp_path / "absent") == set()
    (tmp_path / "cpuinfo").write_text("CPU implementer: 0x41\nFeatures: asimd\n")
    assert flags(tmp_path / "cpuinfo") == set()
