"""Certificates that tests make and servers of tests use."""

import subprocess
from pathlib import Path

_NEW = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"


def self_signed(directory: Path, name: str = "tls") -> tuple[Path, Path]:
    """A new certificate of 127.0.0.1 and localhost, NAME.crt in the directory, and its key, NAME.key."""
    certificate, key = directory / f"{name}.crt", directory / f"{name}.key"
    names = ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    subprocess.run([*_NEW.split(), *names, "-out", certificate, "-keyout", key], check=True, capture_output=True)
    return certificate, key
