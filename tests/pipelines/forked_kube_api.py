"""The program that asks Kubernetes, for processes that are forked when it has been imported: Kubernetes' client reads
where its configuration is when it is imported, and so knows only the place of then."""

import os

from kubernetes.config import kube_config

from pipelines.cluster import kube_api


def main() -> int:
    kube_config.KUBE_CONFIG_DEFAULT_LOCATION = os.environ.get("KUBECONFIG", "~/.kube/config")
    return kube_api.main()
