"""The calls that take specifications: they create and update pipelines and render templates."""

import json
import time

import grpc

from localpachd.api.messages import pps_messages as messages
from localpachd.api.messages import protojson
from localpachd.api.messages.spec_reader import SpecReader
from localpachd.api.pfs.transaction_servicer import TransactionalCalls
from localpachd.api.schema.schema import Empty, pps_pb2, transaction_pb2
from localpachd.errors import InvalidArgument, PachError
from localpachd.pfs.pfs_service import PfsService
from localpachd.pps.pps_service import PpsService
from localpachd.pps.specs import spec, templates
from speclang.names import DEFAULT_PROJECT


class SpecCalls:
    """Specifications of `pps_v2.API`."""

    _pfs: PfsService
    _pps: PpsService
    _specs: SpecReader
    _write: TransactionalCalls

    def CreatePipeline(self, request: pps_pb2.CreatePipelineRequest, context: grpc.ServicerContext) -> Empty:
        self._write(context, transaction_pb2.TransactionRequest(create_pipeline=request))
        return Empty()

    def CreatePipelineV2(
        self, request: pps_pb2.CreatePipelineV2Request, context: grpc.ServicerContext
    ) -> pps_pb2.CreatePipelineV2Response:
        try:
            merged = self._specs.now(request.create_pipeline_request_json)
            effective = merged.effective_message()
        except InvalidArgument as error:
            raise InvalidArgument(f"could not make effective spec: {error}") from error
        if not effective.HasField("pipeline"):
            raise PachError("request.Pipeline cannot be nil")
        effective.update, effective.reprocess = request.update, request.reprocess
        if not effective.pipeline.project.name:
            effective.pipeline.project.name = DEFAULT_PROJECT
        if request.dry_run:
            # Pachyderm validates the specification only when it creates the pipeline; a dry run here does, too.
            spec.parse(merged.request(request.update, request.reprocess), time.time_ns())
        else:
            asked = merged.transaction(request.update, request.reprocess)
            self._write(context, transaction_pb2.TransactionRequest(create_pipeline_v2=asked))
        return pps_pb2.CreatePipelineV2Response(
            effective_create_pipeline_request_json=json.dumps(protojson.as_json(effective))
        )

    def RerunPipeline(self, request: pps_pb2.RerunPipelineRequest, context: grpc.ServicerContext) -> Empty:
        self._pps.rerun_pipeline(messages.required_pipeline(request), request.reprocess)
        return Empty()

    def RenderTemplate(
        self, request: pps_pb2.RenderTemplateRequest, context: grpc.ServicerContext
    ) -> pps_pb2.RenderTemplateResponse:
        text = templates.render(request.template, dict(request.args), self._pfs.reach)
        rendered = json.loads(text)
        if not isinstance(rendered, dict | list):
            raise PachError(f"not a json object or list: {text}")
        found = rendered if isinstance(rendered, list) else [rendered]
        specs = [self._specs.request(json.dumps(each)) for each in found]
        return pps_pb2.RenderTemplateResponse(json=text, specs=specs)
