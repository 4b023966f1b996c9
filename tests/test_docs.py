"""The documents are true: commands, options, make targets, paths, names in the code, links, limits and tables."""

import ast
import contextlib
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from pipelines.analysis.changes.library_history import LibraryChange
from pipelines.checks.suite import CheckReport
from pipelines.client.commit_history import CommitRecord
from pipelines.client.jobs.datums import Datum
from pipelines.client.jobs.jobs import Job
from pipelines.client.jobs.logs import LogLine
from pipelines.cluster import pipeline_graph
from pipelines.cluster.gpu_holders import GpuMachine
from pipelines.cluster.library_overview import LibraryGrowth, LibraryOverview
from pipelines.cluster.pipeline_graph import GraphEdge, PipelineGraph
from pipelines.cluster.pipeline_status import PipelineStatus, ProjectStatus
from pipelines.commands import command_registry
from pipelines.commands.explain import diff
from pipelines.commands.kit import terminal
from pipelines.commands.library.sync import sync_data
from pipelines.commands.pipelines import upgrade_text
from pipelines.library.folder_sync import FolderDifference
from pipelines.specifications import optional_specs, segment_numbers
from speclang.warm_annotations import MEMORY, SECONDS
from stages.files.url_fetcher import FetchLimits
from stages.index import piece_bits
from stages.record import file_limits
from stages.record.file_kinds import FileKind
from stages.record.part_names import PART
from stages.serving.answer.load_limiter import ServiceLimits
from stages.serving.answer.request_schema import MOST_PICTURES, MOST_REQUESTS, MOST_WANTED
from stages.serving.run import connections
from stages.serving.run.connections import ServiceConnection

ROOT = Path(__file__).resolve().parent.parent
DECISIONS = sorted({*(ROOT / "docs" / "decisions").glob("*.md")} - {ROOT / "docs" / "decisions" / "README.md"})
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "docs/*.md", "studies/**/README.md")
    for path in ROOT.glob(pattern)
)
"""All but the decisions."""

PACKAGES = ("localpachd", "stages", "pipelines")
ROOMS = ("api", "pps", "pfs", "worker", "storage", "db", "ids", "errors", "server")

FORMATS = frozenset(["py", "json", "toml", "lock", "keras", "npy", "jsonl", "png", "html", "sqlite", "parquet", "env"])
"""The ends of the names of files."""


@cache
def text(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


def code(document: str) -> list[str]:
    """The code of a document: its indented and fenced lines, and the text between backticks."""
    fenced = re.findall(r"^```.*?\n(.*?)^```", text(document), re.MULTILINE | re.DOTALL)
    indented = re.findall(r"^    (.*)$", text(document), re.MULTILINE)
    return [*"\n".join(fenced).splitlines(), *indented, *re.findall(r"`([^`\n]+)`", text(document))]


@cache
def specs() -> dict[str, dict[str, Any]]:
    return {path.stem: json.loads(path.read_text()) for path in optional_specs.files(ROOT / "specs")}


def rows(document: str, header: str) -> list[list[str]]:
    """The cells of the table whose first line begins like this."""
    lines = iter(text(document).splitlines())
    assert any(line.startswith(header) for line in lines), f"{document} has no table {header}"
    next(lines)
    found = []
    for line in lines:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split("|")])
    return found


@pytest.mark.parametrize("document", DOCUMENTS)
def test_make_targets_exist(document: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.MULTILINE))
    named = {target for line in code(document) for target in re.findall(r"(?:^|\s)make ([a-z-]+)", line)}
    assert named <= targets


@pytest.mark.parametrize("document", DOCUMENTS)
def test_commands_and_their_options_exist(document: str) -> None:
    for line in code(document):
        for typed in re.findall(r"(?:^|/)lookalike ([a-z][^#]*)", line):
            first, *words = typed.split()
            assert first in command_registry.COMMANDS, f"{document}: lookalike {typed}"
            command: Any = command_registry.load(first)
            for word in words:
                if not hasattr(command, "commands"):
                    break
                assert word in command.commands, f"{document}: lookalike {typed}"
                command = command.commands[word]
            options = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
            assert set(re.findall(r"(?<!\S)--?[a-z][a-z-]*", typed)) <= options, f"{document}: lookalike {typed}"


def test_every_document_is_linked_from_the_readme() -> None:
    there = {name for name in DOCUMENTS if name.startswith("docs/")}
    assert there <= set(re.findall(r"\]\(([^)#]+)\)", text("README.md")))


def test_every_command_is_in_the_list_of_commands() -> None:
    said = "\n".join(code("docs/commands.md"))
    assert not [
        name for name in command_registry.COMMANDS if not re.search(rf"^lookalike {name}\b", said, re.MULTILINE)
    ]


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Every command with its name, those of groups too."""
    if not hasattr(command, "commands"):
        yield name, command
        return
    for below, each in command.commands.items():
        yield from _commands(f"{name} {below}", each)


def test_every_help_has_examples_which_can_be_typed(tmp_path: Path) -> None:
    with contextlib.chdir(tmp_path):
        (tmp_path / "specs").symlink_to(ROOT / "specs")
        for name, command in (
            each for top in command_registry.COMMANDS for each in _commands(top, command_registry.load(top))
        ):
            examples = (command.epilog or "").splitlines()
            assert examples, f"lookalike {name} has no examples"
            for line in examples:
                assert len(line) <= 78, line
                typed = shlex.split(line, comments=True)
                words = ["lookalike", *name.split()]
                assert typed[: len(words)] == words, line
                rest = typed[len(words) :]
                if rest[:1] not in (["|"], [">"]):
                    rest = rest[: rest.index(">")] if ">" in rest else rest
                    command.make_context(name, rest)  # exits for a wrong command line
                    terminal.only_data(False)


def test_the_table_of_json_matches_the_values() -> None:
    said = {row[0].strip("`"): re.findall(r"`(\w+)`", row[2]) for row in rows("docs/commands.md", "| command | JSON |")}
    values: dict[str, Any] = {
        "commits": CommitRecord,
        "jobs": Job,
        "jobs PIPELINE@JOB": Datum,
        "library` in `status": LibraryOverview,
        "growth` in `library": LibraryGrowth,
        "pipelines` in `status": PipelineStatus,
        "status --graph": PipelineGraph,
        "nodes` in `status --graph": pipeline_graph.GraphNode,
        "edges` in `status --graph": GraphEdge,
        "logs": LogLine,
    }
    so = {command: [each.name for each in fields(value)] for command, value in values.items()}
    so["status"] = ["server", "library", "jobs", *(each.name for each in fields(ProjectStatus))]
    so["history"] = ["id", *(each.name for each in fields(LibraryChange))]
    so["restore"] = ["commit", "restored", "replaced", "unchanged"]
    so["attributes list"] = ["tables", "attributes", "deployed"]
    so["vectors list"] = ["model", "pictures", "missing", "gone", "deployed"]
    so["undo"] = ["commit", "undone", "pictures"]
    so["diff"] = [*diff.FIELDS, "page"]
    so["add"] = ["commit", "put", "skipped", "replaced", "unreadable", "rejected"]
    so["remove"] = ["commit", "removed", "missing"]
    so["remove --purge"] = ["commit", "removed", "computed", "squashed", "kept"]
    so["compact"] = ["commit", "blocks", "files", "made", "computed", "dropped"]
    so["evaluate"] = ["directory", "metrics", "calibration"]
    so["duplicates"] = ["directory", "removable", "frees", "groups", "near"]
    so["quality"] = ["directory", "commit", "pictures", "lists"]
    so["query"] = ["commit", "put", "skipped", "unreadable", "sheets", "service", "commits", "queries"]
    so["results"] = ["entry", "directory", "notes", "queries"]
    so["sync"] = [*sync_data(FolderDifference("folder"), None)]
    so["upgrade"] = [*upgrade_text.FIELDS]
    so["check"] = [*json.loads(CheckReport([], []).as_json())]
    so["gpus"] = [*(each.name for each in fields(GpuMachine)), "allocated"]
    assert said == so


@pytest.mark.parametrize("document", DOCUMENTS)
def test_relative_links_resolve(document: str) -> None:
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", text(document))
    links += re.findall(r'src="([^"]+)"', text(document))
    broken = [link for link in links if "://" not in link and not (ROOT / document).parent.joinpath(link).exists()]
    assert not broken


@pytest.mark.parametrize("document", DOCUMENTS)
def test_anchors_of_links_exist(document: str) -> None:
    place = (ROOT / document).parent
    for path, anchor in re.findall(r"\]\(([^):#]*)#([^)]+)\)", text(document)):
        target = (place / path).resolve().relative_to(ROOT).as_posix() if path else document
        headings = re.findall(r"^#+ (.+)$", text(target), re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", each).lower().replace(" ", "-") for each in headings}, (path, anchor)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_paths_exist(document: str) -> None:
    places = {path.name for path in ROOT.iterdir() if path.is_dir()} & {*PACKAGES, "specs", "tests", "docs", ".ci"}
    words = {word for line in code(document) for word in re.findall(r"(?<![\w./<-])([\w.-]+/[\w./-]*)(?![\w<*])", line)}
    named = {word for word in words - {SECONDS, MEMORY} if word.split("/")[0] in places}
    assert not [word for word in named if not (ROOT / word).exists()]


def test_the_architecture_is_short_and_names_every_package_and_room() -> None:
    assert len(text("ARCHITECTURE.md").split()) <= 3000
    drawn = text("ARCHITECTURE.md").partition("## The data's way")[0]
    rooms = {
        file.parent.name for package in PACKAGES for file in (ROOT / package).glob("*/**/__init__.py")
        if len(file.relative_to(ROOT / package).parts) <= 3
    }  # fmt: skip
    assert not [name for name in {*PACKAGES, *rooms} if not re.search(rf"^ *{name}/ ", drawn, re.MULTILINE)]


def test_the_architecture_has_few_words_of_its_own() -> None:
    assert len(rows("ARCHITECTURE.md", "| word | meaning |")) <= 20


def test_every_decision_is_listed_once_under_its_title() -> None:
    listed = re.findall(r"^- \[(.+)\]\(([\w-]+\.md)\)$", text("docs/decisions/README.md"), re.MULTILINE)
    titles = {path.name: path.read_text(encoding="utf-8").splitlines()[0] for path in DECISIONS}
    assert sorted(listed) == sorted((title.removeprefix("# "), name) for name, title in titles.items())


def test_names_in_the_architecture_exist_in_the_code() -> None:
    missing = []
    for name in set(re.findall(r"`([a-z_]+(?:\.\w+)+)`", text("ARCHITECTURE.md"))):
        parts = name.split(".")
        if parts[-1] in FORMATS:
            continue
        if parts[0] in ROOMS:
            parts.insert(0, "localpachd")
        if parts[0] in PACKAGES and not _is_there(parts):
            missing.append(name)
    assert not missing


def _is_there(parts: list[str]) -> bool:
    """Whether a dotted name is a module, or is defined in one. Modules are read, since importing some takes seconds."""
    for end in range(len(parts), 0, -1):
        file = ROOT.joinpath(*parts[:end]).with_suffix(".py")
        if file.is_file():
            return _defines(ast.parse(file.read_text()).body, parts[end:])
    return ROOT.joinpath(*parts).is_dir()


def _defines(body: list[ast.stmt], names: list[str]) -> bool:
    if not names:
        return True
    for each in body:
        if isinstance(each, ast.ClassDef | ast.FunctionDef) and each.name == names[0]:
            return _defines(each.body, names[1:])
    return False


def _leaves(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for kind in ("cross", "join"):
        for member in tree.get(kind, ()):
            yield from _leaves(member)
    if "pfs" in tree:
        yield tree["pfs"]


def _branch(leaf: dict[str, Any]) -> str:
    return "" if leaf.get("branch", "master") == "master" else f"@{leaf['branch']}"


def _input(tree: dict[str, Any]) -> str:
    """A specification's input in the form of docs/pipelines.md."""
    if "cron" in tree:
        return f"cron `{tree['cron']['name']}`, overwritten" if tree["cron"].get("overwrite") else "cron"
    if "cross" in tree:
        members = [_input(each) if "pfs" in each else f"({_input(each)})" for each in tree["cross"]]
        return f"cross of {' and '.join(members)}"
    if "join" in tree:
        first, *others = (bool(leaf.get("outer_join")) for leaf in _leaves(tree))
        assert first or not any(others)
        kind = "outer" if first and all(others) else "left outer" if first else "inner"
        return f"{kind} join of {' and '.join(map(_input, tree['join']))}"
    if "group" in tree:
        return f"group of {' and '.join(map(_input, tree['group']))}"
    leaf = tree["pfs"]
    return (
        f"`{leaf['repo']}{_branch(leaf)}:{leaf['glob']}`"
        + (" (lazy)" if leaf.get("lazy") else "")
        + (" (empty)" if leaf.get("empty_files") else "")
        + (f" as `{leaf['name']}`" if leaf["name"] != leaf["repo"] else "")
    )


def test_the_table_of_pipelines_matches_the_specifications() -> None:
    said = {row[0].strip("`"): (row[1], int(row[3])) for row in rows("docs/pipelines.md", "| pipeline | input |")}
    so = {
        name: (_input(spec["input"]), spec.get("resource_limits", {}).get("gpu", {}).get("number", 0))
        for name, spec in specs().items()
    }
    assert said == so


def test_the_table_of_parameters_matches_the_specifications() -> None:
    said: dict[str, dict[str, str]] = {}
    for variable, value, where, _ in rows("docs/pipelines.md", "| variable | is |"):
        names = specs() if where == "all" else where.split(", ")
        said.setdefault(variable.strip("`"), {}).update({name: value.strip("`") for name in names})
    so: dict[str, dict[str, str]] = {}
    for name, spec in specs().items():
        for variable, value in spec["transform"]["env"].items():
            so.setdefault(variable, {})[name] = "" if variable == "LOOKALIKE_STAGE" else value
    assert said == so


def test_the_table_of_overlays_matches_the_files() -> None:
    said = {
        row[0].strip("`"): dict(re.findall(r"`([A-Z_]+)`(?: \(`(.*?)`\))?", row[2]))
        for row in rows("docs/overlays.md", "| overlay | does |")
    }
    so = {
        path.stem: dict(re.findall(r"\$\{([A-Z_]+)(?::-([^}]*))?\}", path.read_text()))
        for path in (ROOT / "specs" / "overlays").glob("*.json")
    }
    assert said == so


def test_a_specification_its_stage_and_its_version_share_a_name() -> None:
    for name, spec in specs().items():
        stage = name.removesuffix("-queries")
        module = stage.replace("-", "_")
        assert spec["pipeline"]["name"] == name
        assert spec["transform"]["cmd"] == ["python3", "-m", f"stages.{module}"]
        assert (ROOT / "stages" / f"{module}.py").is_file()
        assert re.fullmatch(rf"{stage}-[1-9]\d*", spec["transform"]["env"]["LOOKALIKE_STAGE"])


def test_the_table_of_limits_matches_the_stages() -> None:
    assert rows("docs/formats.md", "| other limits |") == [
        ["file of one picture", f"{file_limits.MAX_PICTURE_BYTES >> 20} MiB"],
        ["scans of a JPEG, times its pixels", f"{file_limits.MAX_JPEG_SCANNED_PIXELS:,}"],
        ["members of an archive", f"{file_limits.MAX_MEMBERS:,}"],
        [
            "size of an archive when expanded",
            f"{file_limits.MIN_EXPANSION_BYTES >> 30} GiB, or {file_limits.MAX_EXPANSION} times its size "
            "if that is more",
        ],
    ]


def test_the_table_of_bounds_matches_the_service() -> None:
    bounds, fetched = ServiceLimits(), FetchLimits()
    assert [row[1] for row in rows("docs/serving.md", "| bound |")] == [
        f"{bounds.body_bytes >> 20} MiB",
        f"{MOST_REQUESTS}, {MOST_PICTURES}, {MOST_WANTED:,}",
        f"{bounds.requests}, {bounds.bytes >> 20} MiB, {bounds.pictures:,}",
        f"{ServiceConnection.most}",
        f"{ServiceConnection.share}, {bounds.requests // 2}, {bounds.bytes >> 21} MiB",
        f"{connections.WITHIN:g} s each",
        f"{bounds.answer:g} s",
        f"{bounds.idle:g} s, {bounds.whole:g} s; "
        f"{bounds.idle:g} s and {1024 / bounds.rate:g} s for each KiB if that is less",
        f"{fetched.bytes >> 20} MiB, {fetched.seconds:g} s",
    ]


def test_the_table_of_pictures_matches_the_decoders() -> None:
    table = rows("docs/formats.md", "| pictures |")
    assert [row[2] for row in table] == [
        f"{file_limits.MAX_JPEG_PIXELS // 10**6}; progressive {file_limits.MAX_WHOLE_JPEG_PIXELS // 10**6}",
        f"{file_limits.MAX_PIXELS // 10**6}; WebP {file_limits.MAX_WEBP_PIXELS // 10**6}",
        f"{file_limits.MAX_PIXELS // 10**6}; TIFF in small strips or tiles {file_limits.MAX_TIFF_PIXELS // 10**6}",
        f"{file_limits.MAX_HEIC_PIXELS // 10**6}",
        f"{file_limits.MAX_AVIF_PIXELS // 10**6}",
        f"{file_limits.MAX_JPEG_2000_PIXELS // 10**6}",
        f"{file_limits.MAX_WHOLE_JPEG_PIXELS // 10**6}",
        f"{file_limits.MAX_PIXELS // 10**6}; QOI {file_limits.MAX_QOI_PIXELS // 10**6}",
        f"{file_limits.MAX_PIXELS // 10**6}",
    ]
    named = " ".join(row[0] for row in table)
    assert all(kind.value in named for kind in FileKind if kind.is_picture)


def test_the_table_of_markers_matches_the_configuration() -> None:
    configured = re.findall(r'^    "(\w+): needs', text("pyproject.toml"), re.MULTILINE)
    assert [row[0].strip("`") for row in rows("CONTRIBUTING.md", "| marker |")] == configured


def test_the_guide_loads_the_images_of_the_specifications_into_kind() -> None:
    (loaded,) = re.findall(r"^    kind load docker-image (.*)$", text("docs/cluster.md"), re.MULTILINE)
    assert set(loaded.split()) == {spec["transform"]["image"] for spec in specs().values()}


def test_the_values_files_are_those_of_the_guide() -> None:
    named = set(re.findall(r"docs/helm/(\w+)\.yaml", text("docs/cluster.md")))
    there = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / "docs" / "helm").iterdir()}
    assert there.keys() == named
    assert {name: values["deployTarget"] for name, values in there.items()} == {
        "kind": "LOCAL",
        "gke": "GOOGLE",
        "ack": "CUSTOM",
    }
    assert all(values["proxy"]["enabled"] for values in there.values())
    # Charts from 2.10 on require it, but for LOCAL: see "storage URL required" in templates/pachd/deployment.yaml.
    storages = {name: values["pachd"].get("storage", {}) for name, values in there.items()}
    urls = {name: urlsplit(storage.get("storageURL", "")) for name, storage in storages.items()}
    assert {name: url.scheme for name, url in urls.items()} == {"kind": "", "gke": "gs", "ack": "s3"}
    assert urls["gke"].netloc == storages["gke"]["google"]["bucket"]
    amazon = storages["ack"]["amazon"]
    assert urls["ack"].netloc == amazon["bucket"]
    assert parse_qs(urls["ack"].query) == {"region": [amazon["region"]], "endpoint": [amazon["customEndpoint"]]}


def test_the_arithmetic_of_scale_adds_up() -> None:
    _, *bytes_of = (row[2].replace(",", "") for row in rows("docs/cluster.md", "| in | content | bytes |"))
    *parts, total = map(int, bytes_of)
    assert sum(parts) == total
    billions = {"1 million": 1e6, "100 million": 1e8, "1 billion": 1e9}
    units = {"MB": 1e6, "GB": 1e9}
    for count, digits, segments, each, vectors, whole, shown in rows("docs/cluster.md", "| N | `SEGMENT_DIGITS` |"):
        number = billions[count] / 16 ** int(digits)
        assert int(segments.replace(",", "")) == 16 ** int(digits)
        assert int(each.replace(",", "")) == round(number)
        for said, of_one in ((vectors, 4 * 1280), (whole, parts[-1] - 7300), (shown, 7300)):
            amount, unit = said.split()
            assert float(amount) * units[unit] == pytest.approx(number * of_one, rel=0.03)


def test_the_numbers_that_are_documented_are_those_that_are_proposed_and_add_up() -> None:
    words = {"million": 1e6, "billion": 1e9}

    def number(said: str) -> float:
        amount, *unit = said.replace(",", "").split()
        return float(amount) * (words[unit[0]] if unit else 1)

    for row in rows("docs/cluster.md", "| N | S | B |"):
        pictures, segments, buckets, in_segment, in_bucket, of_parts, dealt, indexed, each = map(number, row)
        numbers = segment_numbers.proposed(int(pictures))
        assert (numbers.segments, numbers.buckets) == (segments, buckets)
        assert (numbers.in_segment(int(pictures)), numbers.in_bucket(int(pictures))) == (in_segment, in_bucket)
        assert of_parts == 4 * pictures / PART
        assert dealt == pytest.approx(numbers.files(int(pictures)) * pictures, rel=0.005)
        files = segments * (3 + 2 * 2 ** piece_bits(int(in_segment)))
        assert indexed == pytest.approx(files, rel=0.1)
        total = 4 * pictures / PART + 3 * segments * buckets + files
        assert each == pytest.approx(total / pictures, abs=0.0005)
    words_of = " ".join(text("docs/cluster.md").split())
    assert f"a segment holds at most {segment_numbers.MOST_IN_SEGMENT:,} pictures" in words_of
    assert f"no more than {segment_numbers.MOST_FILES:g} files a picture" in words_of
    assert (
        f"more than {segment_numbers.MOST_IN_BUCKET:,} pictures in each of {segment_numbers.BUCKETS} buckets"
        in words_of
    )


def test_every_claim_about_security_names_its_tests() -> None:
    """The tables of claims: each row has a test, which exists."""
    rows = [
        line for line in text("SECURITY.md").splitlines() if line.startswith("| ") and not line.endswith("| test |")
    ]
    assert len(rows) >= 20
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", row.split("|")[2])
        assert named, f"no test is named in: {row}"
        for path, name in named:
            assert f"def {name}(" in text(path), f"{path} has no {name}"
