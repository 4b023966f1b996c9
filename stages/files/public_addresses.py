"""Which addresses may be asked for files: those of the public internet, and of networks that are allowed."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from stages.datum.contract import StageError

FETCH_FROM = "FETCH_FROM"
"""The variable with networks that may be asked for pictures though they are not public."""

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")
"""Addresses of IPv6 behind which a translator reaches those of IPv4."""
_OF_AZURE = ipaddress.ip_address("168.63.129.16")  # every machine there finds its platform at this public address
_SPECIAL = tuple(map(ipaddress.ip_network, ("192.0.0.0/24", "192.88.99.0/24", "2001::/23", "3fff::/20")))
"""Networks with a special purpose that older versions of Python take for public, in IANA's registries."""
_UNICAST = ipaddress.ip_network("2000::/3")
"""The addresses of IPv6 that are given out; a public one is among them."""


def networks(text: str) -> tuple[Network, ...]:
    """The networks in a list with commas or spaces. Raises StageError for anything else."""
    try:
        return tuple(ipaddress.ip_network(each) for each in text.replace(",", " ").split())
    except ValueError as error:
        raise StageError(f"{text!r} is not a network such as 10.1.0.0/16, or several: {error}") from error


def public(address: str, allowed: Sequence[Network] = ()) -> bool:
    """Whether an address may be asked: one of the public internet, or of an allowed network."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour or (found.teredo[1] if found.teredo else None)
        if inner is None and found in _TRANSLATED:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if inner is not None:
            return public(str(inner), allowed)
    if any(found in each for each in allowed if each.version == found.version):
        return True
    if found == _OF_AZURE or any(found in each for each in _SPECIAL if each.version == found.version):
        return False
    given_out = found in _UNICAST if found.version == 6 else not (found.is_multicast or found.is_reserved)
    return found.is_global and given_out
