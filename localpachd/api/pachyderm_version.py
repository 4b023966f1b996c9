"""The versions of Pachyderm that a server can answer as. Every served call is served in each: the calls of 2.8 to 2.12
are additions, which older clients do not make."""

from typing import NamedTuple


class PachydermVersion(NamedTuple):
    """A version, comparable with others."""

    major: int
    minor: int
    micro: int


COMPATIBLE = {"2.7": PachydermVersion(2, 7, 8), "2.12": PachydermVersion(2, 12, 2)}
"""The versions, by the names that people give them."""

V2_7, V2_12 = COMPATIBLE["2.7"], COMPATIBLE["2.12"]
