"""An example on a server: creating its pipelines, putting files, and reading the results. Knows no fixture."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import python_pachyderm
import yaml
from google.protobuf import wrappers_pb2
from python_pachyderm.proto.v2.pfs import pfs_pb2
from python_pachyderm.proto.v2.pps import pps_pb2, pps_pb2_grpc

from tests.conditions import until


class Example:
    """One example in a project of its own, so that its repos and pipelines keep their published names."""

    def __init__(self, client: python_pachyderm.Client, project: str, directory: Path) -> None:
        self.client = client
        self.project = project
        self._directory = directory
        self._stub = pps_pb2_grpc.APIStub(client._channel)
        self._v2 = client._channel.unary_unary(
            "/pps_v2.API/CreatePipelineV2",  # the client knows 2.7 only; the message is a string in field 1
            request_serializer=wrappers_pb2.StringValue.SerializeToString,
            response_deserializer=wrappers_pb2.StringValue.FromString,
        )
        client.create_project(project)

    def repo(self, *names: str) -> None:
        """Makes repos."""
        for name in names:
            self.client.create_repo(name, project_name=self.project)

    def at(self, repo: str, branch: str = "master", commit: str = "") -> pfs_pb2.Commit:
        """A branch's head or one commit."""
        named = pfs_pb2.Repo(name=repo, type="user", project=pfs_pb2.Project(name=self.project))
        return pfs_pb2.Commit(repo=named, id=commit, branch=pfs_pb2.Branch(repo=named, name=branch))

    def put(self, repo: str, files: Mapping[str, str | bytes | None], branch: str = "master") -> str:
        """Puts files, replacing what was there (None only deletes), in one commit; returns its id once it is finished,
        since triggers look at finished commits."""
        with self.client.commit(repo, branch, project_name=self.project) as commit:
            for path, content in files.items():
                if content is None:
                    self.client.delete_file(commit, path)
                else:
                    data = content.encode() if isinstance(content, str) else content
                    self.client.put_file_bytes(commit, path, data, append=False)
        (info,) = self.client.wait_commit(self.at(repo, branch, commit.id))
        return str(info.commit.id)

    def create(self, *names: str, words: Mapping[str, str] | None = None, **changes: Any) -> None:
        """Creates the pipelines of specification files: `.json` as python-pachyderm sends them, `.yaml` as pachctl does
        since 2.8. A file may hold several documents. `words` are replaced in the text; `changes` overwrite fields."""
        for name in names:
            text = (self._directory / name).read_text()
            for word, by in {"/code/": f"{self._directory}/", **(words or {})}.items():
                text = text.replace(word, by)
            for document in documents(text):
                document["pipeline"].setdefault("project", {"name": self.project})
                spec = json.dumps({**document, **changes})
                if name.endswith(".yaml"):
                    self._v2(wrappers_pb2.StringValue(value=spec))
                else:
                    self.client.create_pipeline_from_request(python_pachyderm.parse_json_pipeline_spec(spec))

    def render(self, name: str, **arguments: str) -> None:
        """Creates the pipelines that a template renders."""
        template = (self._directory / name).read_text()
        rendered = self._stub.RenderTemplate(pps_pb2.RenderTemplateRequest(template=template, args=arguments))
        for document in documents(rendered.json):
            document["pipeline"].setdefault("project", {"name": self.project})
            self._v2(wrappers_pb2.StringValue(value=json.dumps(document)))

    def tick(self, pipeline: str) -> str:
        """Runs a pipeline's cron inputs now, in a second of its own; returns the commit's id."""
        last = time.time() // 1
        until(lambda: time.time() // 1 > last)  # a tick's name is its second
        self.client.run_cron(pipeline, project_name=self.project)
        return str(next(iter(self.client.list_job(pipeline_name=pipeline, project_name=self.project))).job.id)

    def job(self, pipeline: str, commit: str = "") -> pps_pb2.JobInfo:
        """The job of a commit, or the newest one, once it has ended."""
        if not commit:
            commit = next(iter(self.client.list_job(pipeline_name=pipeline, project_name=self.project))).job.id
        (info,) = self.client.inspect_job(
            commit, pipeline_name=pipeline, wait=True, details=True, project_name=self.project
        )
        return info

    def went(self, pipeline: str, commit: str = "") -> tuple[str, dict[str, int]]:
        """The state of an ended job, and its datums counted by outcome; outcomes of no datum are left out, and the
        skipped datums of a failed job: Pachyderm counts them only when all new ones have succeeded."""
        info = self.job(pipeline, commit)
        outcomes = ["processed", "failed", "recovered", "total"]
        if info.state != pps_pb2.JOB_FAILURE:
            outcomes.append("skipped")
        counted = {outcome: getattr(info, f"data_{outcome}") for outcome in outcomes}
        return pps_pb2.JobState.Name(info.state), {name: number for name, number in counted.items() if number}

    def files(self, repo: str, commit: str = "", branch: str = "master") -> dict[str, str]:
        """Every file with its text."""
        return {path: data.decode() for path, data in self.data(repo, commit, branch).items()}

    def data(self, repo: str, commit: str = "", branch: str = "master") -> dict[str, bytes]:
        """Every file with its bytes."""
        at = self.at(repo, branch, commit)
        found = [each.file.path for each in self.client.walk_file(at, "/") if each.file_type == pfs_pb2.FILE]
        return {path: self._read(at, path) for path in found}

    def log(self, pipeline: str) -> list[str]:
        """The lines of the user code's log."""
        lines = self.client.get_pipeline_logs(pipeline, project_name=self.project)
        return [line.message for line in lines if line.user]

    def close(self) -> None:
        """Deletes the pipelines. The server must be free of contradictions."""
        assert [each.error for each in self.client.fsck()] == []
        for info in self.client.list_pipeline():
            if info.pipeline.project.name == self.project:
                self.client.delete_pipeline(info.pipeline.name, force=True, project_name=self.project)

    def _read(self, commit: pfs_pb2.Commit, path: str) -> bytes:
        with self.client.get_file(commit, path) as file:
            return bytes(file.read())


def documents(text: str) -> list[dict[str, Any]]:
    """The documents of a specification file, YAML or JSON, which is YAML too."""
    found = list(yaml.safe_load_all(text))
    return found[0] if isinstance(found[0], list) else found
