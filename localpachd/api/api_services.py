"""The services of localpachd and the classes that serve them, for the server and for the table of coverage."""

from dataclasses import dataclass

import grpc
from google.protobuf.descriptor import ServiceDescriptor
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from localpachd.api.calls.handlers import BehaviourFactory, add_service
from localpachd.api.messages.spec_reader import SpecReader
from localpachd.api.messages.transaction_requests import TransactionRequests
from localpachd.api.pachyderm_version import PachydermVersion
from localpachd.api.pfs.chunk_links import ChunkLinks
from localpachd.api.pfs.fileset_servicer import FilesetServicer
from localpachd.api.pfs.pfs_servicer import PfsServicer
from localpachd.api.pfs.transaction_servicer import TransactionalCalls, TransactionServicer
from localpachd.api.pps.logs_servicer import LogsServicer
from localpachd.api.pps.loopback_servers import WorkerServicer
from localpachd.api.pps.pps_servicer import PpsServicer
from localpachd.api.schema import schema
from localpachd.api.server.admin_servicers import AdminServicer, EnterpriseServicer, VersionServicer
from localpachd.api.server.debug_dump import DumpSources
from localpachd.api.server.debug_servicer import DebugServicer, add_own_service
from localpachd.api.server.log_levels import LogLevels
from localpachd.api.server.metadata_servicer import MetadataServicer
from localpachd.diagnosis.server_facts import ServerFacts
from localpachd.pfs.pfs_service import PfsService
from localpachd.pps.pps_service import PpsService
from localpachd.worker.secret_store import SecretStore

_HEALTH = health_pb2.DESCRIPTOR.services_by_name["Health"]


@dataclass(frozen=True, slots=True)
class ApiService:
    """A service of the API: its descriptor and, if it is served, the class whose methods serve its calls."""

    descriptor: ServiceDescriptor
    served_by: type | None = None

    def serves(self, call: str) -> bool:
        """Whether a call of the service is served."""
        method = getattr(self.served_by, call, None)
        # The health library's class inherits a method for every call, served or not.
        return method is not None and method is not getattr(health_pb2_grpc.HealthServicer, call, None)


SERVICES = (
    ApiService(schema.SERVICES["pfs_v2.API"], PfsServicer),
    ApiService(schema.SERVICES["pps_v2.API"], PpsServicer),
    ApiService(schema.SERVICES["transaction_v2.API"], TransactionServicer),
    ApiService(schema.SERVICES["admin_v2.API"], AdminServicer),
    ApiService(schema.SERVICES["versionpb_v2.API"], VersionServicer),
    ApiService(_HEALTH, health.HealthServicer),
    ApiService(schema.SERVICES["pachyderm.worker.Worker"], WorkerServicer),
    ApiService(schema.SERVICES["enterprise_v2.API"], EnterpriseServicer),
    ApiService(schema.SERVICES["metadata.API"], MetadataServicer),
    ApiService(schema.SERVICES["logs.API"], LogsServicer),
    ApiService(schema.SERVICES["storage.Fileset"], FilesetServicer),
    ApiService(schema.SERVICES["auth_v2.API"]),
    ApiService(schema.SERVICES["identity_v2.API"]),
    ApiService(schema.SERVICES["license_v2.API"]),
    ApiService(schema.SERVICES["proxy.API"]),
    ApiService(schema.SERVICES["debug_v2.Debug"], DebugServicer),
)


def register(
    server: grpc.Server,
    pfs: PfsService,
    pps: PpsService,
    secrets: SecretStore,
    facts: ServerFacts,
    levels: LogLevels,
    waiting: BehaviourFactory,
    lenient_specs: bool,
    version: PachydermVersion,
    links: ChunkLinks,
) -> None:
    """Adds every service of pachd to a server. (The worker's has servers of its own: see `loopback_servers`.)"""
    specs = SpecReader(pfs, lenient_specs)
    requests = TransactionRequests(pps, specs)
    write = TransactionalCalls(pfs, requests)
    health_pb2_grpc.add_HealthServicer_to_server(health.HealthServicer(), server)
    files, pipelines = PfsServicer(pfs, write), PpsServicer(pfs, pps, secrets, specs, write)
    servicers = (
        ("pfs_v2.API", files),
        ("pps_v2.API", pipelines),
        ("transaction_v2.API", TransactionServicer(pfs, requests)),
        ("admin_v2.API", AdminServicer(pfs)),
        ("versionpb_v2.API", VersionServicer(version)),
        ("enterprise_v2.API", EnterpriseServicer()),
        ("metadata.API", MetadataServicer(pfs)),
        ("logs.API", LogsServicer(pfs)),
        ("storage.Fileset", FilesetServicer(pfs, files, links)),
        ("debug_v2.Debug", DebugServicer(DumpSources(files, pipelines, pps, pfs.db, secrets, facts, version), levels)),
    )
    for name, servicer in servicers:
        add_service(server, name, servicer, waiting)
    add_own_service(server, pps)
