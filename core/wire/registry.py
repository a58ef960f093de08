"""The families of protocols that this broker speaks, and which of them a connection's first octets belong to."""

from .family import MATCH, MORE, NO, SNIFF_MAX

if False:  # for the type checker alone
    from .contract import Family

FAMILIES: "list[Family]" = []  # in the order in which they are asked


def register(family: "Family") -> None:
    """Register a family: it is asked from now on, behind those that are registered."""
    if family not in FAMILIES:
        FAMILIES.append(family)


def sniff(octets: bytes, families: "list[Family]" = FAMILIES) -> "tuple[int, Family | None]":
    """(MATCH, the family), (MORE, None) or (NO, None) for the first octets of a connection, of which these families are asked."""
    answer = NO
    for family in families:
        verdict = family.sniff(octets)
        if verdict == MATCH:
            return MATCH, family
        if verdict == MORE and len(octets) < SNIFF_MAX:
            answer = MORE
    return answer, None
