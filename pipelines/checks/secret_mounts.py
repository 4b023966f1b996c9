"""The secrets of a pipeline, and the volumes that a cluster makes of them.

Follows worker_rc.go of Pachyderm 2.7.
"""

from collections.abc import Iterator

from pipelines.specifications.drafts import SpecDraft
from pipelines.specifications.findings import Flaw, FlawLevel


def check(draft: SpecDraft) -> Iterator[Flaw]:
    """Secrets that are mounted more than once."""
    mounted: set[str] = set()
    for place, secret in enumerate(draft.get("transform", "secrets", default=())):
        if not secret.get("mount_path"):
            continue
        name = str(secret.get("name", ""))
        if name in mounted:
            why = (
                f"mounts the secret {name} again: on a cluster the pipeline fails, since Pachyderm names a volume "
                "after its secret and Kubernetes refuses two of one name"
            )
            fix = "mount it once: the directory has a file for each of its keys"
            yield Flaw(FlawLevel.WARNING, "secret", ("transform", "secrets", place, "mount_path"), why, fix)
        mounted.add(name)
