"""The container engine's socket: errors when no engine answers."""

from pathlib import Path

import pytest

from localpachd.worker.docker import container_engine
from localpachd.worker.docker.container_engine import ContainerEngine, EngineError


def test_without_an_engine_the_error_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="no container engine answers: start Docker or Podman"):
        container_engine.find({"DOCKER_HOST": f"unix://{tmp_path}/docker.sock"})
    with pytest.raises(EngineError, match="an engine on another machine cannot see this one's files"):
        container_engine.find({"DOCKER_HOST": "tcp://10.0.0.1:2375"})
    with pytest.raises(EngineError, match="does not answer"):
        ContainerEngine(tmp_path / "none").converse("/exec/1/start", {})
