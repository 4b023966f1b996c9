"""Type stubs of the schema's messages, which mypy reads and nothing else needs.

`python -m localpachd.api.schema.stubs GENERATOR DIRECTORY`, which `make stubs` calls, has protoc-gen-mypy generate
them. The generator runs in an environment of its own, since it needs a newer protobuf than python-pachyderm allows."""

import subprocess
import sys
from pathlib import Path, PurePosixPath

from google.protobuf.compiler.plugin_pb2 import CodeGeneratorRequest, CodeGeneratorResponse

from localpachd.api.schema import schema

PACKAGE = "pachyderm_schema"
"""The package that the stubs make up. It has no code: `api.schema` builds the classes when the server starts."""
_GOOGLE = "google/protobuf/"
"""Files below this have stubs in types-protobuf."""


def request() -> CodeGeneratorRequest:
    """The request for stubs of every file of the schema, renamed to modules of `PACKAGE`."""
    asked = CodeGeneratorRequest()
    for file in schema.FILES:
        renamed = asked.proto_file.add()
        renamed.CopyFrom(file)
        renamed.name = _renamed(file.name)
        renamed.dependency[:] = [_renamed(name) for name in file.dependency]
        if not renamed.name.startswith(_GOOGLE):
            asked.file_to_generate.append(renamed.name)
    return asked


def _renamed(name: str) -> str:
    return name if name.startswith(_GOOGLE) else f"{PACKAGE}/{PurePosixPath(name).name}"


def main(generator: str, directory: str) -> None:
    """Writes the stubs below a directory. Raises SystemExit with the generator's message if it fails."""
    done = subprocess.run([generator], input=request().SerializeToString(), capture_output=True, check=False)
    response = CodeGeneratorResponse.FromString(done.stdout)
    if done.returncode or response.error:
        raise SystemExit(response.error or done.stderr.decode())
    for file in response.file:
        path = Path(directory, file.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.content)


if __name__ == "__main__":
    main(*sys.argv[1:])
