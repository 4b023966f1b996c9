"""pachctl for machines without it: those of its commands that the README types, over the official Python client.

`python -m tests.substitute COMMAND...`, with the address of the server in the file that PACH_CONFIG names. Knows no
fixture.
"""

import argparse
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from python_pachyderm import Client
from python_pachyderm.pfs import SubcommitType
from python_pachyderm.proto.v2.pfs.pfs_pb2 import FileType
from python_pachyderm.util import parse_json_pipeline_spec


def _client() -> Client:
    address = urlsplit(Path(os.environ["PACH_CONFIG"]).read_text(encoding="utf-8"))
    return Client(host=address.hostname, port=address.port)


def _parsed(named: str) -> tuple[SubcommitType, str]:
    """`repo@branch:/path` as the client takes it."""
    repo, _, rest = named.partition("@")
    branch, _, path = rest.partition(":")
    return (repo, branch), path or "/"


def _files(client: Client, commit: SubcommitType, path: str) -> Iterator[str]:
    for each in client.list_file(commit, path):
        if each.file_type == FileType.DIR:
            yield from _files(client, commit, each.file.path)
        else:
            yield each.file.path


def _put(client: Client, named: str, source: Path) -> None:
    commit, path = _parsed(named)
    with client.modify_file_client(commit) as change:
        for file in sorted(source.rglob("*")) if source.is_dir() else [source]:
            if file.is_file():
                target = f"{path.rstrip('/')}/{file.relative_to(source)}" if source.is_dir() else path
                change.put_file_from_bytes(target, file.read_bytes())


def _get(client: Client, named: str, target: Path) -> None:
    commit, path = _parsed(named)
    for file in _files(client, commit, path):
        place = target / Path(file).relative_to(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(client.get_file(commit, file).read())


def _list(client: Client, named: str) -> None:
    print(f"{'NAME':40} {'TYPE':4} SIZE")
    for each in client.list_file(*_parsed(named)):
        print(f"{each.file.path:40} {'dir' if each.file_type == FileType.DIR else 'file'} {each.size_bytes}B")


def main() -> None:
    """Runs one command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="+")
    parser.add_argument("-f", dest="source", type=Path)
    parser.add_argument("-o", dest="target", type=Path)
    parser.add_argument("-r", dest="recursive", action="store_true")
    typed = parser.parse_intermixed_args()
    match typed.words:
        case ["connect", address]:
            Path(os.environ["PACH_CONFIG"]).write_text(address, encoding="utf-8")
        case ["create", "repo", name]:
            _client().create_repo(name)
        case ["create", "pipeline"]:
            _client().create_pipeline_from_request(parse_json_pipeline_spec(typed.source.read_text(encoding="utf-8")))
        case ["put", "file", named]:
            _put(_client(), named, typed.source)
        case ["wait", "commit", named]:
            _client().wait_commit(_parsed(named)[0])
        case ["list", "file", named]:
            _list(_client(), named)
        case ["get", "file", named]:
            _get(_client(), named, typed.target)
        case other:
            parser.error(f"not among the commands of the README: {' '.join(other)}")


if __name__ == "__main__":
    main()
