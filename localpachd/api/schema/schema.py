"""The messages and services of Pachyderm's API: python-pachyderm's descriptors of 2.7 with `schema_additions` on top.

The only module that knows either; every other module of api takes its messages from here.
"""

import re
from collections.abc import Iterator, Mapping
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

from google.protobuf import descriptor_pool, message_factory, struct_pb2
from google.protobuf.descriptor import Descriptor, FileDescriptor, ServiceDescriptor
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
from google.protobuf.internal.enum_type_wrapper import EnumTypeWrapper
from google.protobuf.message import Message
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

from localpachd.api.schema.schema_additions import CALLS, MESSAGES

_OLD = (pfs, pps, transaction, admin, version, worker, enterprise, auth, identity, license_, proxy, debug, struct_pb2)
_FIELD = re.compile(r"(repeated |map )?([\w.]+) (\w+) = (\d+)")
_STREAM = "stream "
_SCALARS = {
    name: FieldDescriptorProto.Type.Value(f"TYPE_{name.upper()}")
    for name in ("string", "bytes", "bool", "int32", "int64", "uint32", "uint64")
}


def _files(roots: tuple[ModuleType, ...]) -> dict[str, FileDescriptorProto]:
    """The files of generated modules and of everything they import, each after its imports."""
    found: dict[str, FileDescriptorProto] = {}

    def visit(file: FileDescriptor) -> None:
        if file.name in found:
            return
        for each in file.dependencies:
            visit(each)
        found[file.name] = FileDescriptorProto()
        file.CopyToProto(found[file.name])

    for module in roots:
        visit(module.DESCRIPTOR)
    return found


def _named(members: Any, name: str) -> Any:
    """The member of this name of a repeated field; it is added if it is missing."""
    return next((each for each in members if each.name == name), None) or members.add(name=name)


def _set_fields(message: DescriptorProto, full_name: str, text: str) -> None:
    package, _ = _split(full_name)
    for label, kind, name, number in _FIELD.findall(text):
        for place, old in enumerate(message.field):
            if old.number == int(number):
                del message.field[place]
                break
        field = message.field.add(name=name, number=int(number))
        field.label = FieldDescriptorProto.LABEL_REPEATED if label else FieldDescriptorProto.LABEL_OPTIONAL
        if label == "map ":
            field.type, field.type_name = (
                FieldDescriptorProto.TYPE_MESSAGE,
                f".{full_name}.{_set_entry(message, name, kind)}",
            )
        elif kind in _SCALARS:
            field.type = _SCALARS[kind]
        else:
            field.type, field.type_name = FieldDescriptorProto.TYPE_MESSAGE, _type_name(kind, package)


def _set_entry(message: DescriptorProto, name: str, kind: str) -> str:
    """Adds the entry message of a map from strings, and returns its name."""
    entry = message.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
    entry.options.map_entry = True
    for number, (field, type_) in enumerate((("key", "string"), ("value", kind)), start=1):
        entry.field.add(name=field, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL, type=_SCALARS[type_])
    return entry.name


def _of_package(files: dict[str, FileDescriptorProto], package: str) -> FileDescriptorProto:
    """The file of a package. One that 2.7 does not have is added and imports all the others."""
    for file in files.values():
        if file.package == package:
            return file
    name = f"{package.replace('.', '/')}.proto"
    files[name] = FileDescriptorProto(name=name, package=package, syntax="proto3", dependency=[*files])
    return files[name]


def _add(files: dict[str, FileDescriptorProto]) -> None:
    """Puts the additions on top of the files."""
    for full_name, text in MESSAGES.items():
        package, (name, *nested) = _split(full_name)
        message = _named(_of_package(files, package).message_type, name)
        for each in nested:
            message = _named(message.nested_type, each)
        _set_fields(message, full_name, text)
    for full_name, text in (call for calls in CALLS.values() for call in calls.items()):
        service, _, name = full_name.partition("/")
        package, (service_name,) = _split(service)
        method = _named(_named(_of_package(files, package).service, service_name).method, name)
        request, reply = text.split(" -> ")
        method.input_type, method.client_streaming = _type_name(request, package), request.startswith(_STREAM)
        method.output_type, method.server_streaming = _type_name(reply, package), reply.startswith(_STREAM)


def _type_name(text: str, package: str) -> str:
    """The full name of a message that an addition to a package names."""
    name = text.removeprefix(_STREAM)
    return f".{name}" if name[0].islower() else f".{package}.{name}"


def _split(full_name: str) -> tuple[str, list[str]]:
    """A full name as its package, whose parts begin with lower-case letters, and the path within it."""
    parts = full_name.split(".")
    depth = next(place for place, part in enumerate(parts) if part[0].isupper())
    return ".".join(parts[:depth]), parts[depth:]


def _package(name: str) -> SimpleNamespace:
    """A package's messages and enums by name, as in a generated module."""
    file = _POOL.FindFileByName(_of_package(_files_by_name, name).name)
    made: dict[str, object] = {
        name: message_class(descriptor) for name, descriptor in file.message_types_by_name.items()
    }
    for name, enum in file.enum_types_by_name.items():
        made[name] = EnumTypeWrapper(enum)
        made |= {value.name: value.number for value in enum.values}
    return SimpleNamespace(**made)


def _services() -> Iterator[ServiceDescriptor]:
    for name in _files_by_name:
        yield from _POOL.FindFileByName(name).services_by_name.values()


def message_class(descriptor: Descriptor) -> type[Message]:
    """The class of a message, with the classes of its nested messages as attributes."""
    made = _FACTORY.GetPrototype(descriptor)
    for each in descriptor.nested_types:
        setattr(made, each.name, message_class(each))
    return made


_POOL = descriptor_pool.DescriptorPool()
_FACTORY = message_factory.MessageFactory(_POOL)
_files_by_name = _files(_OLD)
_add(_files_by_name)
FILES = tuple(_files_by_name.values())
"""The descriptors of all files, each after its imports."""
for _file in FILES:
    _POOL.AddSerializedFile(_file.SerializeToString())

SERVICES: Mapping[str, ServiceDescriptor] = {each.full_name: each for each in _services()}
"""Every service by its full name."""

if TYPE_CHECKING:  # `make stubs` generates these types from FILES
    from google.protobuf.duration_pb2 import Duration as Duration
    from google.protobuf.empty_pb2 import Empty as Empty
    from google.protobuf.timestamp_pb2 import Timestamp as Timestamp
    from google.protobuf.wrappers_pb2 import BytesValue as BytesValue
    from pachyderm_schema import (
        admin_pb2 as admin_pb2,
        cdr_pb2 as cdr_pb2,
        debug_pb2 as debug_pb2,
        enterprise_pb2 as enterprise_pb2,
        logs_pb2 as logs_pb2,
        metadata_pb2 as metadata_pb2,
        pfs_pb2 as pfs_pb2,
        pps_pb2 as pps_pb2,
        rpc_pb2 as rpc_pb2,
        storage_pb2 as storage_pb2,
        task_pb2 as task_pb2,
        transaction_pb2 as transaction_pb2,
        version_pb2 as version_pb2,
        worker_pb2 as worker_pb2,
    )
else:
    pfs_pb2, pps_pb2, transaction_pb2, admin_pb2 = map(_package, ("pfs_v2", "pps_v2", "transaction_v2", "admin_v2"))
    version_pb2, worker_pb2, task_pb2 = map(_package, ("versionpb_v2", "pachyderm.worker", "taskapi"))
    enterprise_pb2, debug_pb2, rpc_pb2 = map(_package, ("enterprise_v2", "debug_v2", "google.rpc"))
    logs_pb2, metadata_pb2, storage_pb2, cdr_pb2 = map(_package, ("logs", "metadata", "storage", "cdr"))
    Empty, Timestamp, Duration, BytesValue = (
        message_class(_POOL.FindMessageTypeByName(f"google.protobuf.{name}"))
        for name in ("Empty", "Timestamp", "Duration", "BytesValue")
    )
