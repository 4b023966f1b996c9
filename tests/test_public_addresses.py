"""Which addresses are public: one rule, which stands in localpachd and in the stages, as neither imports the other."""

import ipaddress
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies as st

from localpachd.storage import url_reach
from stages.files import public_addresses

RULES: list[Callable[..., bool]] = [url_reach.public, public_addresses.public]

PUBLIC = ("8.8.8.8", "93.184.216.34", "2606:4700::1111", "2606:2800:220:1::1", "::ffff:8.8.8.8", "64:ff9b::808:808")

OTHERS = (
    "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "168.63.129.16", "100.64.0.1", "0.0.0.0", "127.0.0.1",
    "192.0.0.0", "192.0.0.8", "192.0.0.9", "192.0.0.170", "192.0.0.255", "192.0.2.1", "192.88.99.1", "198.18.0.1",
    "198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
    "::", "::1", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254", "fec0::1", "ff02::1", "2001::1", "2001:db8::1",
    "2001:20::1", "3fff::1", "3fff:fff::1", "4000::1", "5f00::1", "100::1", "100:0:0:1::1", "64:ff9b:1::1",
    "::ffff:10.0.0.1", "::ffff:127.0.0.1", "::ffff:192.0.0.8", "64:ff9b::7f00:1", "64:ff9b::a00:1", "2002:7f00:1::",
    "2001:0:7f00:1::", "nonsense", "",
)  # fmt: skip


@pytest.mark.parametrize("public", RULES)
@pytest.mark.parametrize("address", [*PUBLIC, *OTHERS])
def test_addresses_of_iana_registries(address: str, public: Callable[..., bool]) -> None:
    assert public(address) is (address in PUBLIC)


@pytest.mark.parametrize("public", RULES)
@given(st.ip_addresses(network="10.0.0.0/8") | st.ip_addresses(network="fc00::/7"))
def test_a_private_address_is_asked_in_an_allowed_network_alone(public: Callable[..., bool], address: Any) -> None:
    assert not public(str(address))
    allowed = (ipaddress.ip_network(f"{address}/{address.max_prefixlen}"),)
    assert public(str(address), allowed)
    if address.version == 4:
        assert public(f"::ffff:{address}", allowed)
    assert not public("127.0.0.1", allowed) and not public("::1", allowed)


@given(st.ip_addresses(), st.lists(st.ip_addresses(), max_size=3), st.integers(0, 32))
def test_both_packages_have_one_rule(address: Any, allowed: list[Any], prefix: int) -> None:
    networks = [ipaddress.ip_network((each, prefix), strict=False) for each in allowed]
    one, other = (public(str(address), networks) for public in RULES)
    assert one is other
