"""The request for type stubs: it has every file that the server's messages come from, renamed as one package."""

import sys
from pathlib import Path

import pytest
from google.protobuf.compiler.plugin_pb2 import CodeGeneratorRequest

from localpachd.api.schema import schema, stubs

# A generator that answers with one file for each it is asked for, or refuses.
GENERATOR = f"""#!{sys.executable}
import sys
from google.protobuf.compiler.plugin_pb2 import CodeGeneratorRequest, CodeGeneratorResponse
request = CodeGeneratorRequest.FromString(sys.stdin.buffer.read())
response = CodeGeneratorResponse()
for name in request.file_to_generate:
    response.file.add(name=name + "i", content="# " + name)
if "refuse" in sys.argv[0]:
    response.error = "no such type"
sys.stdout.buffer.write(response.SerializeToString())
"""


@pytest.fixture
def asked() -> CodeGeneratorRequest:
    return stubs.request()


def test_every_file_comes_after_its_imports_under_its_new_name(asked: CodeGeneratorRequest) -> None:
    names: list[str] = []
    for file in asked.proto_file:
        assert set(file.dependency) <= set(names)
        names.append(file.name)
    assert len(set(names)) == len(names) == len(schema.FILES)
    assert all(name.startswith(("google/protobuf/", "pachyderm_schema/")) for name in names)
    assert [*asked.file_to_generate] == [name for name in names if name.startswith("pachyderm_schema/")]


def test_additions_are_among_the_messages(asked: CodeGeneratorRequest) -> None:
    messages = {f"{file.package}.{each.name}" for file in asked.proto_file for each in file.message_type}
    assert {"pps_v2.CreatePipelineV2Request", "metadata.Edit", "google.rpc.Status"} <= messages


@pytest.fixture
def generator(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    program = tmp_path / request.param
    program.write_text(GENERATOR)
    program.chmod(0o755)
    return str(program)


@pytest.mark.parametrize("generator", ["generate"], indirect=True)
def test_the_generated_files_are_written(generator: str, tmp_path: Path) -> None:
    stubs.main(generator, str(tmp_path / "stubs"))
    assert (tmp_path / "stubs/pachyderm_schema/pps.protoi").read_text() == "# pachyderm_schema/pps.proto"


@pytest.mark.parametrize("generator", ["refuse"], indirect=True)
def test_a_refusal_is_passed_on(generator: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="no such type"):
        stubs.main(generator, str(tmp_path / "stubs"))
    assert not (tmp_path / "stubs").exists()
