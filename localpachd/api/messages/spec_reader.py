"""Specifications as users write them in JSON: reads them strictly and merges them with their defaults into requests.

They are merged as in Pachyderm 2.8: by RFC 7396 over names in lowerCamelCase, the user's values on top.
"""

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from google.protobuf import json_format

from localpachd.api.messages import protojson
from localpachd.api.schema.schema import pps_pb2
from localpachd.errors import InvalidArgument, prefixed
from localpachd.pfs.pfs_service import PfsService
from localpachd.pps import spec_defaults
from localpachd.pps.pps_entities import SpecText
from localpachd.pps.specs import spec
from speclang import messages, strict_json
from speclang.field_paths import dotted
from speclang.merge_patches import merge
from speclang.messages import MessageProblem, MessageRule, ParsedMessage
from speclang.names import DEFAULT_PROJECT
from speclang.strict_json import JSONDecodeError

BUILT_IN: Mapping[str, Any] = {
    "transform": {"image": spec.DEFAULT_IMAGE},
    "outputBranch": "master",
    "datumTries": str(spec.DEFAULT_TRIES),
    "reprocessSpec": "until_success",
}
"""The defaults below all others."""

_REQUEST = pps_pb2.CreatePipelineRequest.DESCRIPTOR
_DEFAULTS = ("create_pipeline_request", "createPipelineRequest")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MergedSpec:
    """A specification merged with its defaults: `effective` with all of them, as JSON; `message` without the built-in
    ones, which the pps room fills in itself; `written` is the JSON that is kept with the pipeline."""

    effective: Mapping[str, Any]
    message: pps_pb2.CreatePipelineRequest
    written: SpecText

    def effective_message(self) -> pps_pb2.CreatePipelineRequest:
        """The specification with all defaults."""
        return _message(self.effective)

    def request(self, update: bool, reprocess: bool) -> dict[str, Any]:
        """The request to the pps room to create the pipeline or, with `update`, its next version."""
        return {**protojson.as_mapping(self.message), "update": update, "reprocess": reprocess}

    def transaction(self, update: bool, reprocess: bool) -> pps_pb2.CreatePipelineTransaction:
        """The same as a request that a transaction can hold."""
        held = pps_pb2.CreatePipelineTransaction(
            create_pipeline_request=self.message, user_json=self.written.user, effective_json=self.written.effective
        )
        held.create_pipeline_request.update, held.create_pipeline_request.reprocess = update, reprocess
        return held


class SpecReader:
    """Reads specifications. Unknown fields are errors or, with `lenient`, left out with a line in the server's log.

    All methods raise InvalidArgument with every problem that they find and its place.
    """

    def __init__(self, pfs: PfsService, lenient: bool = False) -> None:
        self._pfs = pfs
        self._lenient = lenient

    def now(self, text: str) -> MergedSpec:
        """The specification of a JSON text, merged with the present defaults of the server and of its project."""
        return self.merge_now(self.read(text), text)

    def merge_now(self, user: Mapping[str, Any], text: str) -> MergedSpec:
        """The same for a specification already read (see `read`) from that text."""
        project = str(((user.get("pipeline") or {}).get("project") or {}).get("name") or DEFAULT_PROJECT)
        with self._pfs.db.read() as conn:
            found = [spec_defaults.read(conn, name).spec for name in (spec_defaults.SERVER, project)]
        with prefixed(f"the defaults of the server or of project {project}", InvalidArgument):
            layers = [self.read_defaults(each) for each in found]
        return _merged(text, [*layers, user])

    def request(self, text: str) -> pps_pb2.CreatePipelineRequest:
        """The CreatePipelineRequest of a JSON text, without any defaults."""
        return _message(self.read(text))

    def read(self, text: str) -> dict[str, Any]:
        """The CreatePipelineRequest of a JSON text as JSON with names in lowerCamelCase."""
        return self._canonical(_parsed(text))

    def read_defaults(self, text: str) -> dict[str, Any]:
        """The defaults of CreatePipelineRequests in the JSON of ClusterDefaults or ProjectDefaults."""
        given = _parsed(text)
        unknown = [key for key in given if key not in _DEFAULTS]
        if unknown:
            raise InvalidArgument(f'unknown field "{unknown[0]}" in defaults: the only one is "{_DEFAULTS[1]}"')
        if len(given) > 1:
            raise InvalidArgument(f"{_DEFAULTS[1]} is given twice, in two spellings")
        found = next(iter(given.values()), None)
        read = self._canonical({} if found is None else found)
        _message(read)
        return read

    def merge(self, text: str, cluster: Mapping[str, Any], project: Mapping[str, Any]) -> MergedSpec:
        """The specification of a JSON text, merged with these defaults of the server and of its project (see
        `read_defaults`)."""
        return _merged(text, [cluster, project, self.read(text)])

    def _canonical(self, value: object) -> dict[str, Any]:
        read = messages.read(value, _REQUEST, camel=True, patch=True)
        unknown = [_said(each, read) for each in read.problems if each.rule is MessageRule.UNKNOWN]
        others = [_said(each, read) for each in read.problems if each.rule is not MessageRule.UNKNOWN]
        if unknown and self._lenient:
            _log.warning("left out of a pipeline specification: %s", "; ".join(unknown))
        wrong = others if self._lenient else [*unknown, *others]
        if wrong:
            raise InvalidArgument("; ".join(wrong))
        return read.value


def _merged(text: str, layers: Iterable[Mapping[str, Any]]) -> MergedSpec:
    own: dict[str, Any] = {}
    effective: Any = BUILT_IN
    for layer in layers:
        own, effective = merge(own, layer), merge(effective, layer)
    return MergedSpec(effective, _message(own), SpecText(text, json.dumps(effective)))


def _message(value: Mapping[str, Any]) -> pps_pb2.CreatePipelineRequest:
    try:
        return json_format.ParseDict(value, pps_pb2.CreatePipelineRequest())
    except json_format.ParseError as error:
        raise InvalidArgument(str(error)) from error


def _parsed(text: str) -> dict[str, Any]:
    try:
        given = strict_json.parse(text).value
    except JSONDecodeError as error:
        raise InvalidArgument(f"not JSON: {error}") from error
    if not isinstance(given, dict):
        raise InvalidArgument("not a JSON object")
    return given


def _said(problem: MessageProblem, read: ParsedMessage) -> str:
    written = read.written[problem.at]
    fix = f": {problem.fix}" if problem.fix else ""
    if problem.rule is MessageRule.UNKNOWN:
        where = f" in {dotted(written[:-1])}" if written[:-1] else ""
        return f'unknown field "{written[-1]}"{where}{fix}'
    return f"{dotted(written) or 'the specification'} {problem.why}{fix}"
