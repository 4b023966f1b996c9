"""Which services localpachd answers, and with what. The list that the server registers and the coverage table reads."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from python_pachyderm.proto.v2.admin import admin_pb2, admin_pb2_grpc
from python_pachyderm.proto.v2.auth import auth_pb2
from python_pachyderm.proto.v2.debug import debug_pb2
from python_pachyderm.proto.v2.enterprise import enterprise_pb2, enterprise_pb2_grpc
from python_pachyderm.proto.v2.identity import identity_pb2
from python_pachyderm.proto.v2.license import license_pb2
from python_pachyderm.proto.v2.pfs import pfs_pb2, pfs_pb2_grpc
from python_pachyderm.proto.v2.pps import pps_pb2, pps_pb2_grpc
from python_pachyderm.proto.v2.proxy import proxy_pb2
from python_pachyderm.proto.v2.transaction import transaction_pb2, transaction_pb2_grpc
from python_pachyderm.proto.v2.version.versionpb import version_pb2, version_pb2_grpc
from python_pachyderm.proto.v2.worker import worker_pb2, worker_pb2_grpc

from localpachd.api.admin import AdminServicer, EnterpriseServicer, VersionServicer
from localpachd.api.pfs import PfsServicer
from localpachd.api.pps import PpsServicer
from localpachd.api.transactions import TransactionServicer
from localpachd.api.worker import WorkerServicer
from localpachd.pfs.service import Pfs
from localpachd.pps.service import Pps


@dataclass(frozen=True, slots=True)
class Service:
    """A service of the API: its descriptor, the class that serves it, and the generated class that leaves all unserved.

    Without a class, every call of it is unserved.
    """

    descriptor: ServiceDescriptor
    served_by: type | None = None
    base: type | None = None


SERVICES = (
    Service(pfs_pb2.DESCRIPTOR.services_by_name["API"], PfsServicer, pfs_pb2_grpc.APIServicer),
    Service(pps_pb2.DESCRIPTOR.services_by_name["API"], PpsServicer, pps_pb2_grpc.APIServicer),
    Service(transaction_pb2.DESCRIPTOR.services_by_name["API"], TransactionServicer, transaction_pb2_grpc.APIServicer),
    Service(admin_pb2.DESCRIPTOR.services_by_name["API"], AdminServicer, admin_pb2_grpc.APIServicer),
    Service(version_pb2.DESCRIPTOR.services_by_name["API"], VersionServicer, version_pb2_grpc.APIServicer),
    Service(health_pb2.DESCRIPTOR.services_by_name["Health"], health.HealthServicer, health_pb2_grpc.HealthServicer),
    Service(worker_pb2.DESCRIPTOR.services_by_name["Worker"], WorkerServicer, worker_pb2_grpc.WorkerServicer),
    Service(enterprise_pb2.DESCRIPTOR.services_by_name["API"], EnterpriseServicer, enterprise_pb2_grpc.APIServicer),
    Service(auth_pb2.DESCRIPTOR.services_by_name["API"]),
    Service(identity_pb2.DESCRIPTOR.services_by_name["API"]),
    Service(license_pb2.DESCRIPTOR.services_by_name["API"]),
    Service(proxy_pb2.DESCRIPTOR.services_by_name["API"]),
    Service(debug_pb2.DESCRIPTOR.services_by_name["Debug"]),
)


def register(server: grpc.Server, pfs: Pfs, pps: Pps) -> None:
    """Adds every service that pachd has to a server. (The worker's has servers of its own: see `api.worker`.)"""
    add: Mapping[Callable[[Any, grpc.Server], None], Any] = {
        pfs_pb2_grpc.add_APIServicer_to_server: PfsServicer(pfs),
        pps_pb2_grpc.add_APIServicer_to_server: PpsServicer(pps, pfs.changes),
        transaction_pb2_grpc.add_APIServicer_to_server: TransactionServicer(pfs),
        admin_pb2_grpc.add_APIServicer_to_server: AdminServicer(pfs),
        version_pb2_grpc.add_APIServicer_to_server: VersionServicer(),
        enterprise_pb2_grpc.add_APIServicer_to_server: EnterpriseServicer(),
        health_pb2_grpc.add_HealthServicer_to_server: health.HealthServicer(),
    }
    for add_to_server, servicer in add.items():
        add_to_server(servicer, server)
