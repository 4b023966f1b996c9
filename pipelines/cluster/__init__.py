"""The cluster beneath Pachyderm: its nodes, GPUs, registries and quotas, and the state of pipelines that run on it."""
