"""Fields as people read them."""

from speclang.field_paths import dotted


def test_a_field_reads_as_it_is_written() -> None:
    assert dotted(("input", "cross", 0, "pfs", "glob")) == "input.cross[0].pfs.glob"
    assert dotted(("metadata", "annotations", "k8s.io/a")) == 'metadata.annotations["k8s.io/a"]'
    assert dotted(()) == ""
