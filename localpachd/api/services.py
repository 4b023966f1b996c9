"""The services of localpachd and the classes that serve them, for the server and for the table of coverage."""

from dataclasses import dataclass

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from localpachd.api.calls.handlers import Waiting, add_service
from localpachd.api.messages.requests import Requests
from localpachd.api.messages.specs import Specs
from localpachd.api.pfs.pfs import PfsServicer
from localpachd.api.pfs.storage import FilesetServicer
from localpachd.api.pfs.transactions import TransactionServicer, Writes
from localpachd.api.pps.logs import LogsServicer
from localpachd.api.pps.pps import PpsServicer
from localpachd.api.pps.worker import WorkerServicer
from localpachd.api.schema import schema
from localpachd.api.server import debugging
from localpachd.api.server.admin import AdminServicer, EnterpriseServicer, VersionServicer
from localpachd.api.server.debug import DebugServicer
from localpachd.api.server.debug_dump import Sources
from localpachd.api.server.log_levels import LogLevels
from localpachd.api.server.metadata import MetadataServicer
from localpachd.diagnosis.facts import Facts
from localpachd.pfs.service import Pfs
from localpachd.pps.service import Pps
from localpachd.worker.secrets import Secrets

_HEALTH = health_pb2.DESCRIPTOR.services_by_name["Health"]


@dataclass(frozen=True, slots=True)
class Service:
    """A service of the API: its descriptor and, if it is served, the class whose methods serve its calls."""

    descriptor: ServiceDescriptor
    served_by: type | None = None

    def serves(self, call: str) -> bool:
        """Whether a call of the service is served."""
        method = getattr(self.served_by, call, None)
        # The health library's class inherits a method for every call, served or not.
        return method is not None and method is not getattr(health_pb2_grpc.HealthServicer, call, None)


SERVICES = (
    Service(schema.SERVICES["pfs_v2.API"], PfsServicer),
    Service(schema.SERVICES["pps_v2.API"], PpsServicer),
    Service(schema.SERVICES["transaction_v2.API"], TransactionServicer),
    Service(schema.SERVICES["admin_v2.API"], AdminServicer),
    Service(schema.SERVICES["versionpb_v2.API"], VersionServicer),
    Service(_HEALTH, health.HealthServicer),
    Service(schema.SERVICES["pachyderm.worker.Worker"], WorkerServicer),
    Service(schema.SERVICES["enterprise_v2.API"], EnterpriseServicer),
    Service(schema.SERVICES["metadata.API"], MetadataServicer),
    Service(schema.SERVICES["logs.API"], LogsServicer),
    Service(schema.SERVICES["storage.Fileset"], FilesetServicer),
    Service(schema.SERVICES["auth_v2.API"]),
    Service(schema.SERVICES["identity_v2.API"]),
    Service(schema.SERVICES["license_v2.API"]),
    Service(schema.SERVICES["proxy.API"]),
    Service(schema.SERVICES["debug_v2.Debug"], DebugServicer),
)


def register(
    server: grpc.Server,
    pfs: Pfs,
    pps: Pps,
    secrets: Secrets,
    facts: Facts,
    levels: LogLevels,
    waiting: Waiting,
    lenient_specs: bool,
) -> None:
    """Adds every service of pachd to a server. (The worker's has servers of its own: see `api.worker`.)"""
    specs = Specs(pfs, lenient_specs)
    requests = Requests(pps, specs)
    write = Writes(pfs, requests)
    health_pb2_grpc.add_HealthServicer_to_server(health.HealthServicer(), server)
    files, pipelines = PfsServicer(pfs, write), PpsServicer(pfs, pps, secrets, specs, write)
    servicers = (
        ("pfs_v2.API", files),
        ("pps_v2.API", pipelines),
        ("transaction_v2.API", TransactionServicer(pfs, requests)),
        ("admin_v2.API", AdminServicer(pfs)),
        ("versionpb_v2.API", VersionServicer()),
        ("enterprise_v2.API", EnterpriseServicer()),
        ("metadata.API", MetadataServicer(pfs)),
        ("logs.API", LogsServicer(pfs)),
        ("storage.Fileset", FilesetServicer(pfs, files)),
        ("debug_v2.Debug", DebugServicer(Sources(files, pipelines, pps, pfs.db, secrets, facts), levels)),
    )
    for name, servicer in servicers:
        add_service(server, name, servicer, waiting)
    debugging.add_service(server, pps)
