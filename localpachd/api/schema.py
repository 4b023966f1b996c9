"""The messages and services of Pachyderm's API: python-pachyderm's descriptors of 2.7 with those of `newer` on top.

The one place that knows either; every other module of api takes its messages from here.
"""

import re
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FileDescriptor, ServiceDescriptor
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from python_pachyderm.proto.v2.admin import admin_pb2 as admin
from python_pachyderm.proto.v2.auth import auth_pb2 as auth
from python_pachyderm.proto.v2.debug import debug_pb2 as debug
from python_pachyderm.proto.v2.enterprise import enterprise_pb2 as enterprise
from python_pachyderm.proto.v2.identity import identity_pb2 as identity
from python_pachyderm.proto.v2.license import license_pb2 as license_
from python_pachyderm.proto.v2.pfs import pfs_pb2 as pfs
from python_pachyderm.proto.v2.pps import pps_pb2 as pps
from python_pachyderm.proto.v2.proxy import proxy_pb2 as proxy
from python_pachyderm.proto.v2.transaction import transaction_pb2 as transaction
from python_pachyderm.proto.v2.version.versionpb import version_pb2 as version
from python_pachyderm.proto.v2.worker import worker_pb2 as worker

from localpachd.api.newer import CALLS, MESSAGES

_OLD = (pfs, pps, transaction, admin, version, worker, enterprise, auth, identity, license_, proxy, debug)
_FIELD = re.compile(r"(repeated )?([\w.]+) (\w+) = (\d+)")
_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    name: _Field.Type.Value(f"TYPE_{name.upper()}") for name in ("string", "bool", "int32", "int64", "uint32", "uint64")
}


def _files(roots: tuple[Any, ...]) -> dict[str, descriptor_pb2.FileDescriptorProto]:
    """The files of some generated modules and of all they import, each after those it imports."""
    found: dict[str, descriptor_pb2.FileDescriptorProto] = {}

    def visit(file: FileDescriptor) -> None:
        if file.name in found:
            return
        for each in file.dependencies:
            visit(each)
        found[file.name] = descriptor_pb2.FileDescriptorProto()
        file.CopyToProto(found[file.name])

    for module in roots:
        visit(module.DESCRIPTOR)
    return found


def _message(holder: Any, path: list[str]) -> Any:
    """The message of a name below a file or a message, made where it is missing."""
    messages = holder.nested_type if isinstance(holder, descriptor_pb2.DescriptorProto) else holder.message_type
    found = next((each for each in messages if each.name == path[0]), None)
    if found is None:
        found = messages.add(name=path[0])
    return _message(found, path[1:]) if path[1:] else found


def _set_fields(message: Any, text: str) -> None:
    for repeated, kind, name, number in _FIELD.findall(text):
        for place, old in enumerate(message.field):
            if old.number == int(number):
                del message.field[place]
                break
        field = message.field.add(name=name, number=int(number))
        field.label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
        if kind in _SCALARS:
            field.type = _SCALARS[kind]
        else:
            field.type, field.type_name = _Field.TYPE_MESSAGE, f".{kind}"


def _add(files: dict[str, descriptor_pb2.FileDescriptorProto]) -> None:
    """Puts what is newer on top of the files."""
    by_package = {file.package: file for file in files.values()}
    for full_name, text in MESSAGES.items():
        package, *path = full_name.split(".")
        _set_fields(_message(by_package[package], path), text)
    for service, calls in CALLS.items():
        (target,) = by_package[service.partition(".")[0]].service
        for name, call in calls.items():
            method = next((each for each in target.method if each.name == name), None) or target.method.add(name=name)
            method.input_type, method.output_type = f".{call.request}", f".{call.reply}"
            method.client_streaming, method.server_streaming = call.streamed_request, call.streamed_reply


def _package(module: Any) -> SimpleNamespace:
    """A file's messages and enums by name, as a generated module has them."""
    file = _POOL.FindFileByName(module.DESCRIPTOR.name)
    made = {name: message_class(descriptor) for name, descriptor in file.message_types_by_name.items()}
    for name, enum in file.enum_types_by_name.items():
        made[name] = EnumTypeWrapper(enum)
        made |= {value.name: value.number for value in enum.values}
    return SimpleNamespace(**made)


def _services() -> Iterator[ServiceDescriptor]:
    for module in _OLD:
        yield from _POOL.FindFileByName(module.DESCRIPTOR.name).services_by_name.values()


def message_class(descriptor: Descriptor) -> Any:
    """The class of a message, with those nested in it as its attributes."""
    made = _FACTORY.GetPrototype(descriptor)
    for each in descriptor.nested_types:
        setattr(made, each.name, message_class(each))
    return made


_POOL = descriptor_pool.DescriptorPool()
_FACTORY = message_factory.MessageFactory(_POOL)
_every = _files(_OLD)
_add(_every)
for _each in _every.values():
    _POOL.Add(_each)

SERVICES = {each.full_name: each for each in _services()}
"""Every service by its full name."""

pfs_pb2, pps_pb2, transaction_pb2, admin_pb2 = map(_package, (pfs, pps, transaction, admin))
version_pb2, worker_pb2, enterprise_pb2 = map(_package, (version, worker, enterprise))
Empty, Timestamp, Duration, BytesValue = (
    message_class(_POOL.FindMessageTypeByName(f"google.protobuf.{name}"))
    for name in ("Empty", "Timestamp", "Duration", "BytesValue")
)
