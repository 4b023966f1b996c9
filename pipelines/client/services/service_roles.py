"""The services that there are, that of searches and that of the promoted classifier: the names and the places of their
deployed ones. Knows no server."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class ServiceRole:
    """A service. pipeline: of the deployed one, and its group of opt-in pipelines. command: that serves. port: unless
    it is told another, and the deployed one's node port. secret: its name, in Kubernetes and in localpachd. member: of
    a service's status that says whether it answers such questions. suffix: of the file of its token."""

    pipeline: str
    command: str
    port: int
    secret: str
    member: str
    suffix: str = ""

    @property
    def mounted(self) -> Path:
        """The place of the secret in the service's container."""
        return Path("/secrets") / self.secret


SEARCH = ServiceRole("serve", "lookalike serve", 30680, "lookalike-serve", "search")
CLASSIFY = ServiceRole(
    "classify-serve", "lookalike classify serve", 30681, "lookalike-classify-serve", "classify", ".classify"
)
ROLES = {each.pipeline: each for each in (SEARCH, CLASSIFY)}
