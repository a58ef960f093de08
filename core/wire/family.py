"""A family of protocols, as the core knows it: by what name, by which first octets, and which class speaks it (contract.pyi)."""

from ..shim import const

if False:  # for the type checker alone
    from typing import Any

# What `Family.sniff` answers of the first octets of a connection.
NO = const(0)  # this family's never begin so
MORE = const(1)  # they may become its own
MATCH = const(2)

SNIFF_MAX = const(16)  # octets that are shown to families at most: who answers MORE to so many has answered NO


class Family:
    """`name`: for people. `header`: octets that every connection of the family begins with; a peer that speaks nothing known here is
    answered with the header of the first family. `protocol`: class of contract.Protocol; it finds the first octets in the buffer.
    `format`: the reader and writer of its messages' properties.
    """

    def __init__(self, name: str, header: bytes, protocol: "Any", format_: "Any") -> None:
        self.name = name
        self.header = header
        self.protocol = protocol
        self.format = format_

    def sniff(self, octets: bytes) -> int:
        """NO, MORE or MATCH for the first octets of a connection: at most SNIFF_MAX, at least one."""
        size = min(len(octets), len(self.header))
        if octets[:size] != self.header[:size]:
            return NO
        return MATCH if size == len(self.header) else MORE
