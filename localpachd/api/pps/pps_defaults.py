"""The calls about the defaults of specifications."""

from collections.abc import Iterator, Mapping

import grpc

from localpachd.api.messages import pps_messages as messages
from localpachd.api.messages.spec_reader import MergedSpec, SpecReader
from localpachd.api.messages.times import timestamp
from localpachd.api.schema.schema import pps_pb2
from localpachd.errors import InvalidArgument, PachError
from localpachd.pfs import projects
from localpachd.pfs.pfs_service import PfsService
from localpachd.pfs.transaction import Transaction
from localpachd.pps import spec_defaults
from localpachd.pps.pps_entities import Pipeline
from localpachd.pps.pps_service import PpsService
from speclang.names import DEFAULT_PROJECT

_SetRequest = pps_pb2.SetClusterDefaultsRequest | pps_pb2.SetProjectDefaultsRequest


class DefaultsCalls:
    """Defaults of `pps_v2.API`, for the whole server and for projects."""

    _pfs: PfsService
    _pps: PpsService
    _specs: SpecReader

    def GetClusterDefaults(
        self, request: pps_pb2.GetClusterDefaultsRequest, context: grpc.ServicerContext
    ) -> pps_pb2.GetClusterDefaultsResponse:
        with self._pfs.db.read() as conn:
            return pps_pb2.GetClusterDefaultsResponse(cluster_defaults_json=spec_defaults.read(conn).spec)

    def SetClusterDefaults(
        self, request: pps_pb2.SetClusterDefaultsRequest, context: grpc.ServicerContext
    ) -> pps_pb2.SetClusterDefaultsResponse:
        return pps_pb2.SetClusterDefaultsResponse(
            affected_pipelines=self._set(request, request.cluster_defaults_json, spec_defaults.SERVER, "cluster")
        )

    def GetProjectDefaults(
        self, request: pps_pb2.GetProjectDefaultsRequest, context: grpc.ServicerContext
    ) -> pps_pb2.GetProjectDefaultsResponse:
        project = request.project.name or DEFAULT_PROJECT
        with self._pfs.db.read() as conn:
            projects.inspect(conn, project)
            found = spec_defaults.read(conn, project)
        return pps_pb2.GetProjectDefaultsResponse(project_defaults_json=found.spec, created_at=timestamp(found.created))

    def SetProjectDefaults(
        self, request: pps_pb2.SetProjectDefaultsRequest, context: grpc.ServicerContext
    ) -> pps_pb2.SetProjectDefaultsResponse:
        project = request.project.name or DEFAULT_PROJECT
        with self._pfs.db.read() as conn:
            projects.inspect(conn, project)
        return pps_pb2.SetProjectDefaultsResponse(
            affected_pipelines=self._set(request, request.project_defaults_json, project, "project")
        )

    def _set(self, request: _SetRequest, text: str, project: str, kind: str) -> list[pps_pb2.Pipeline]:
        """Sets defaults and, if the request says so, updates the pipelines that they change. Returns these."""
        try:
            new = self._specs.read_defaults(text)
        except InvalidArgument as error:
            raise InvalidArgument(f"invalid {kind} defaults JSON: {error}") from error
        affected = dict(self._affected(new, project)) if request.regenerate else {}

        def step(txn: Transaction) -> None:
            spec_defaults.write(txn, text, project)
            for pipeline, merged in affected.items():
                try:
                    self._pps.add_pipeline(txn, merged.request(True, request.reprocess), merged.written)
                except PachError as error:
                    raise type(error)(f"could not regenerate pipeline {pipeline}: {error}") from error

        if not request.dry_run:
            self._pfs.transact(step)
        return [messages.pipeline(each) for each in affected]

    def _affected(self, new: Mapping[str, object], project: str) -> Iterator[tuple[Pipeline, MergedSpec]]:
        """The pipelines that these defaults, of a project or of the server, change."""
        chosen = () if project == spec_defaults.SERVER else (project,)
        for info in self._pps.list_pipelines(projects=chosen):
            with self._pfs.db.read() as conn:
                cluster, own = (
                    spec_defaults.read(conn, name).spec for name in (spec_defaults.SERVER, info.pipeline.project)
                )
            if project == spec_defaults.SERVER:
                merged = self._specs.merge(info.written.user, new, self._specs.read_defaults(own))
            else:
                merged = self._specs.merge(info.written.user, self._specs.read_defaults(cluster), new)
            if merged.effective_message() != self._specs.request(info.written.effective):
                yield info.pipeline, merged
