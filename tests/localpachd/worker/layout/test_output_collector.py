"""The output in `/pfs/out`: files, links of every kind, and names that cannot be kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.localpachd.worker.bench import Bench

FILES = {"/d/a": b"content of a", "/d/e/b": b"content of b"}


def test_links_to_inputs_give_their_content(bench: Bench) -> None:
    script = (
        'cd "$PFS/out"; ln -s "$in/a" absolute; ln -s ../in/d/a relative; ln -s "$in" directory;'
        ' mkdir sub; ln -s ../../in/d/e/b sub/deep; ln -s "$PFS/in/d/e/b" sub/other'
    )
    result = bench.one(bench.sh(script), bench.input("in", "/d/", FILES))
    assert (result.state, result.reason) == ("PROCESSED", "")
    a, b = b"content of a", b"content of b"
    assert bench.output(result) == {
        "/absolute": a, "/directory/a": a, "/directory/e/b": b, "/relative": a, "/sub/deep": b, "/sub/other": b,
    }  # fmt: skip


@pytest.mark.parametrize("how", ["lazy", "empty_files"])
def test_links_to_files_that_were_never_loaded_stand_for_the_whole_files(bench: Bench, how: str) -> None:
    task = bench.sh('cd "$PFS/out"; ln -s "$in/a" file; ln -s ../in/d/e directory; ln -s ../in all')
    result = bench.one(task, bench.input("in", "/d/", FILES, **{how: True}))
    assert bench.output(result) == {
        "/all/d/a": b"content of a", "/all/d/e/b": b"content of b", "/directory/b": b"content of b",
        "/file": b"content of a",
    }  # fmt: skip
    assert result.stats.download_bytes == 0


def test_a_link_to_an_input_that_user_code_changed(bench: Bench) -> None:
    task = bench.sh('cd "$in"; printf CHANGED > a; ln -s "$in/a" "$PFS/out/a"; ln -s "$in" "$PFS/out/d"; rm -r e')
    result = bench.one(task, bench.input("in", "/d/", FILES))
    assert bench.output(result) == {"/a": b"CHANGED", "/d/a": b"CHANGED"}


def test_links_out_of_pfs_give_content(at_home: Bench, tmp_path: Path) -> None:
    place = tmp_path / "outside"
    (place / "sub").mkdir(parents=True)
    (place / "f").write_bytes(b"f")
    (place / "sub" / "g").write_bytes(b"g")
    (place / "chain").symlink_to("f")
    (place / "again").symlink_to(place / "chain")
    task = at_home.sh(f'ln -s {place} "$PFS/out/dir"; ln -s {place}/again "$PFS/out/file"')
    assert at_home.output(at_home.one(task)) == {
        "/dir/again": b"f", "/dir/chain": b"f", "/dir/f": b"f", "/dir/sub/g": b"g", "/file": b"f",
    }  # fmt: skip


def test_links_to_temporary_files_give_content(bench: Bench) -> None:
    script = (
        "T=$(mktemp -d); echo f > $T/f; mkdir $T/d; echo g > $T/d/g; echo h > here;"
        ' cd "$PFS/out"; ln -s $T/f file; ln -s $T dir; ln -s "$OLDPWD/here" here'
    )
    assert bench.output(bench.one(bench.sh(script))) == {
        "/dir/d/g": b"g\n", "/dir/f": b"f\n", "/file": b"f\n", "/here": b"h\n",
    }  # fmt: skip


def test_chains_of_links_through_pfs_are_followed_as_user_code_sees_them(bench: Bench) -> None:
    task = bench.sh('ln -s "$PFS/in" /tmp/$$; mv /tmp/$$ "$PFS/hop"; ln -s "$PFS/in/d/../d/a" "$PFS/out/dots"')
    assert bench.output(bench.one(task, bench.input("in", "/d/", FILES))) == {"/dots": b"content of a"}


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ('echo x > "$PFS/out/f"; ln -s f "$PFS/out/link"', 'could not find input "out"'),
        ('echo x > "$PFS/out/f"; ln -s "$PFS/out/f" "$PFS/out/link"', 'could not find input "out"'),
        ('ln -s "$PFS/out" "$PFS/out/link"', 'could not find input "out"'),
        ('ln -s . "$PFS/out/link"', 'could not find input "out"'),
        ('ln -s "$PFS/.env" "$PFS/out/link"', 'could not find input ".env"'),
        ('echo x > "$PFS/mine"; ln -s "$PFS/mine" "$PFS/out/link"', 'could not find input "mine"'),
        ('ln -s "$PFS" "$PFS/out/link"', 'could not find input ""'),
        ('ln -s /no/such/file "$PFS/out/link"', "No such file or directory: /no/such/file"),
        ('ln -s "$PFS/in/gone" "$PFS/out/link"', "No such file or directory"),
        ('ln -s "$in/loop" "$PFS/out/link"; ln -s loop "$in/loop"', "Too many levels of symbolic links"),
        ('ln -s .. "$in/up"; ln -s "$in" "$PFS/out/link"', "a link to a directory within a linked one"),
        ('cd "$PFS/out"; python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\'s\')"', "neither a file nor"),
    ],
)  # fmt: skip
def test_links_and_things_that_cannot_be_kept_fail_with_a_reason(bench: Bench, script: str, reason: str) -> None:
    result = bench.one(bench.sh(f'{script}; echo kept > "$PFS/out/kept"'), bench.input("in", "/d/", FILES))
    assert result.state == "FAILED"
    assert reason in result.reason
    assert bench.output(result)["/kept"] == b"kept\n"


def test_a_link_to_a_device_fails_with_a_reason(at_home: Bench) -> None:
    result = at_home.one(at_home.sh('ln -s /dev/null "$PFS/out/link"'))
    assert "neither a file nor a directory" in result.reason


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a*b", "path (/a*b) invalid: globbing character (*) not allowed in path"),
        ("naïve", "path (/naïve) invalid: only printable ASCII characters allowed"),
        ("2024+1", "globbing character (+)"),
        (r"$(printf 'a\377')", r"path (/a\udcff) invalid: only printable ASCII"),
        ("'a\nb'", "only printable ASCII"),
    ],
)
def test_names_that_pfs_cannot_hold_fail_with_a_reason(bench: Bench, name: str, reason: str) -> None:
    result = bench.one(bench.sh(f'cd "$PFS/out"; echo x > {name}; mkdir ok; echo y > ok/y'))
    assert result.state == "FAILED"
    assert result.reason.startswith(
        "cannot upload file produced by the user code because its name cannot be represented in PFS: path ("
    )
    assert reason in result.reason
    assert bench.output(result) == {"/ok/y": b"y\n"}


def test_names_that_pfs_can_hold_are_kept(bench: Bench) -> None:
    result = bench.one(bench.sh('cd "$PFS/out"; echo x > "a b#c\'d\\"e,;=%~"; echo x > ...; echo x > \'b\\s\''))
    assert sorted(bench.output(result)) == ["/...", "/a b#c'd\"e,;=%~", "/b\\s"]


def test_pipes_and_empty_directories_vanish(bench: Bench) -> None:
    assert bench.output(bench.one(bench.sh('mkfifo "$PFS/out/pipe"; mkdir -p "$PFS/out/a/b"'))) == {}


def test_an_out_that_was_replaced_fails(bench: Bench) -> None:
    result = bench.one(bench.sh('rm "$PFS/out"; mkdir "$PFS/out"; echo lost > "$PFS/out/f"'))
    assert result.state == "FAILED"
    assert "/pfs/out was replaced" in result.reason


def test_a_scratch_directory_that_was_deleted_harms_no_other_datum(bench: Bench) -> None:
    task = bench.sh('[ $N = 1 ] || rm -rf "$PFS"/.scratch; echo $N > "$PFS/out/f"')
    first, second = bench.run(task, bench.datum(N="0"), bench.datum(N="1"))
    assert first.state == "FAILED"
    assert bench.output(second) == {"/f": b"1\n"}


def test_hard_links_and_moved_inputs_are_files(bench: Bench) -> None:
    result = bench.one(
        bench.sh('ln "$in/a" "$PFS/out/linked"; mv "$in/e" "$PFS/out/"'), bench.input("in", "/d/", FILES)
    )
    assert bench.output(result) == {"/e/b": b"content of b", "/linked": b"content of a"}
