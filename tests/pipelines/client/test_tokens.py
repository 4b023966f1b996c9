"""A server that asks for a token, and the command."""

import base64
import json
import re
import ssl
import urllib.request
from pathlib import Path

from pipelines.client.server.connection import ServerTarget
from tests.certificates import self_signed
from tests.command import Command
from tests.servers import StartPachd

NOTHING = "lookalike: there is no repo nothing-there: there are none\n"
TOKEN = "0123456789abcdef" * 4


def configured(place: Path, context: dict[str, str]) -> dict[str, str]:
    """The environment of a command with this context of pachctl."""
    file = place / "config.json"
    file.write_text(json.dumps({"v2": {"active_context": "one", "contexts": {"one": context}}}))
    return {"PACH_CONFIG": str(file)}


def test_the_token_of_the_context_is_sent(start_pachd: StartPachd, tmp_path: Path, command: Command) -> None:
    (tmp_path / "token").write_text(TOKEN)
    server = start_pachd(tmp_path / "root", "--token-file", str(tmp_path / "token"))
    command.environment = configured(tmp_path, {"pachd_address": server.address, "session_token": TOKEN})
    assert command.run("commits", "nothing-there").stderr == NOTHING
    command.environment = configured(tmp_path, {"pachd_address": server.address})
    refused = command.run("commits", "nothing-there")
    assert refused.returncode == 1
    assert re.search(rf"the server at {server.address} asks for a token:\s+no authentication token", refused.stderr)
    assert "pachctl auth use-auth-token" in " ".join(refused.stderr.split())
    command.environment |= {"PACH_PYTHON_AUTH_TOKEN": TOKEN}
    assert command.run("commits", "nothing-there").stderr == NOTHING


def test_the_certificate_of_the_context_is_verified(start_pachd: StartPachd, tmp_path: Path, command: Command) -> None:
    certificate, key = self_signed(tmp_path)
    other, _ = self_signed(tmp_path, "other")
    server = start_pachd(tmp_path / "root", "--tls-cert", str(certificate), "--tls-key", str(key))
    for each, verified in ((certificate, True), (other, False)):
        trusted = base64.b64encode(each.read_bytes()).decode()
        command.environment = configured(tmp_path, {"pachd_address": server.address, "server_cas": trusted})
        said = command.run("commits", "nothing-there").stderr
        assert (said == NOTHING) is verified
        assert ("no Pachyderm answers" in said) is not verified


def test_a_token_is_in_no_printed_target() -> None:
    assert TOKEN not in repr(ServerTarget("grpc://here:1", token=TOKEN))


def test_up_passes_its_options_and_the_command_has_the_access(tmp_path: Path, command: Command) -> None:
    """Token, TLS, metrics, quota, retention and variables; a start that fails says why."""
    (tmp_path / "token").write_text(TOKEN + "\n")
    certificate, key = self_signed(tmp_path)
    command.environment = {"PACH_CONFIG": str(tmp_path / "config.json"), "LOOKALIKE_ROOT": str(tmp_path / "library")}
    refused = command.fails("up", "--port", "0", "--quota", "much")
    assert "much is not a number of bytes, such as 50G or 2Ti" in " ".join(refused.split())
    given: list[str | Path] = [
        "--token-file",
        tmp_path / "token",
        "--tls-cert",
        certificate,
        "--tls-key",
        key,
        "--pass-env",
        "HOME",
    ]
    said = command.says("up", "--port", "0", "--retention", "90", "--quota", "50G", "--metrics-port", "0", *given)
    try:
        assert "localpachd is running at grpcs://127.0.0.1:" in said
        (metrics,) = re.findall(r"its metrics are at (https://127\.0\.0\.1:\d+/metrics)", said)
        context = ssl.create_default_context(cafile=str(certificate))
        asked = urllib.request.Request(metrics, headers={"Authorization": f"Bearer {TOKEN}"})
        with urllib.request.urlopen(asked, timeout=60, context=context) as reply:
            shown = reply.read().decode()
        assert "localpachd_retention_days 90.0" in shown
        assert "localpachd_quota_bytes 5e+010" in shown or "localpachd_quota_bytes 5e+10" in shown
        assert command.run("commits", "nothing-there").stderr == NOTHING
        again = command.says("up", "--port", "0")
        assert metrics in again and "localpachd was running already at" in again
        assert command.run("commits", "nothing-there").stderr == NOTHING
    finally:
        assert "localpachd has stopped" in command.says("down")
