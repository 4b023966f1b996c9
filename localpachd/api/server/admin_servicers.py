"""The calls about the server itself: its identity, its version, and services that it lacks."""

from localpachd import ids
from localpachd.api.pachyderm_version import V2_7, V2_12, PachydermVersion
from localpachd.api.schema.schema import Empty, admin_pb2, enterprise_pb2, version_pb2
from localpachd.errors import NotFound
from localpachd.pfs import metadata, projects
from localpachd.pfs.pfs_service import PfsService

ADDITIONAL = "+localpachd"


class AdminServicer:
    """`admin_v2.API`."""

    def __init__(self, pfs: PfsService) -> None:
        self._pfs = pfs
        self._id = pfs.db.fact("cluster_id", ids.new_id)
        # Clients keep the deployment id in their configuration and refuse a server that comes back with another.
        self._deployment = pfs.db.fact("deployment_id", ids.new_id)

    def InspectCluster(self, request: admin_pb2.InspectClusterRequest) -> admin_pb2.ClusterInfo:
        warnings = [*self._project_warnings(request), *_version_warnings(request)]
        with self._pfs.db.read() as conn:
            noted = metadata.read_metadata(conn, "cluster", "")
        return admin_pb2.ClusterInfo(
            id=self._id,
            deployment_id=self._deployment,
            version_warnings_ok=True,
            version_warnings=warnings,
            metadata=noted,
        )

    def _project_warnings(self, request: admin_pb2.InspectClusterRequest) -> list[str]:
        name = request.current_project.name
        if not name:
            return []
        try:
            with self._pfs.db.read() as conn:
                projects.inspect(conn, name)
        except NotFound as error:
            return [f'WARNING: Could not inspect project "{name}": {error}']
        return []


class VersionServicer:
    """`versionpb_v2.API`."""

    def __init__(self, version: PachydermVersion) -> None:
        self._version = version

    def GetVersion(self, request: Empty) -> version_pb2.Version:
        return version_pb2.Version(**self._version._asdict(), additional=ADDITIONAL, platform="localpachd")


class EnterpriseServicer:
    """`enterprise_v2.API`, for clients that ask for a licence; the server has none."""

    def GetState(self, request: enterprise_pb2.GetStateRequest) -> enterprise_pb2.GetStateResponse:
        return enterprise_pb2.GetStateResponse(state=enterprise_pb2.NONE)

    def PauseStatus(self, request: enterprise_pb2.PauseStatusRequest) -> None:
        """Never paused."""


def _version_warnings(request: admin_pb2.InspectClusterRequest) -> list[str]:
    """Warnings for pachctl to print. A client with no version (python_pachyderm) or a development version gets none."""
    client = request.client_version
    first, last = V2_7[:2], V2_12[:2]
    if (client.major, client.minor) == (0, 0) or first <= (client.major, client.minor) <= last:
        return []
    return [
        f"WARNING: localpachd serves the API of Pachyderm {first[0]}.{first[1]} to {last[0]}.{last[1]}, your client is "
        f"{client.major}.{client.minor}: calls that the server does not know fail with UNIMPLEMENTED."
    ]
