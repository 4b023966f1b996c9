"""The schema: everything in 2.7 unchanged, and the additions of 2.8 to 2.12."""

from types import ModuleType

import pytest
from google.protobuf.descriptor import Descriptor
from python_pachyderm.proto.v2.admin import admin_pb2
from python_pachyderm.proto.v2.pfs import pfs_pb2
from python_pachyderm.proto.v2.pps import pps_pb2
from python_pachyderm.proto.v2.transaction import transaction_pb2

from localpachd.api.schema import schema
from localpachd.api.schema.schema_additions import CALLS, MESSAGES

RENAMED = {"pps_v2.PipelineInfo.details_json": "user_spec_json"}
"""Fields of 2.7 that nobody filled, whose numbers were given to others."""


@pytest.mark.parametrize("module", [admin_pb2, pfs_pb2, pps_pb2, transaction_pb2], ids=lambda module: module.__name__)
def test_2_7_is_unchanged(module: ModuleType) -> None:
    ours = getattr(schema, module.__name__.rpartition(".")[2])
    for name, old in module.DESCRIPTOR.message_types_by_name.items():
        _same(old, getattr(ours, name).DESCRIPTOR)
    for name, old in module.DESCRIPTOR.enum_types_by_name.items():
        for value in old.values:
            assert getattr(ours, value.name) == getattr(ours, name).Value(value.name) == value.number
    for old in module.DESCRIPTOR.services_by_name.values():
        new = schema.SERVICES[old.full_name]
        assert {call.name for call in old.methods} <= {call.name for call in new.methods}


def _same(old: Descriptor, new: Descriptor) -> None:
    for field in old.fields:
        ours = new.fields_by_number[field.number]
        assert ours.name == RENAMED.get(field.full_name, field.name)
        assert (ours.type, ours.label) == (field.type, field.label)
        if field.message_type is not None:
            assert ours.message_type.full_name == field.message_type.full_name
    for name, nested in old.nested_types_by_name.items():
        _same(nested, new.nested_types_by_name[name])


def test_every_addition_is_in_the_schema() -> None:
    for full_name, text in (call for calls in CALLS.values() for call in calls.items()):
        service, _, name = full_name.partition("/")
        found = schema.SERVICES[service].methods_by_name[name]
        for kind, named in zip((found.input_type, found.output_type), text.split(" -> "), strict=True):
            assert f".{kind.full_name}".endswith(f".{named.removeprefix('stream ')}")
    for full_name in MESSAGES:
        package, name, *nested = full_name.removeprefix("google.").split(".")
        message = getattr(getattr(schema, f"{package.removesuffix('_v2')}_pb2"), name)
        for each in nested:
            message = getattr(message, each)
        assert message.DESCRIPTOR.full_name == full_name
        message()


def test_a_2_7_client_reads_a_reply_with_additions() -> None:
    sent = schema.pps_pb2.PipelineInfo(
        pipeline=schema.pps_pb2.Pipeline(name="p"),
        version=3,
        user_spec_json="{}",
        effective_spec_json="{ }",
        state=schema.pps_pb2.PIPELINE_RUNNING,
    )
    read = pps_pb2.PipelineInfo.FromString(sent.SerializeToString())
    assert (read.pipeline.name, read.version, read.state) == ("p", 3, pps_pb2.PIPELINE_RUNNING)
    assert read.SerializeToString() == sent.SerializeToString()
