"""Serial numbers of 32 bits (RFC 1982): AMQP 1.0's delivery-ids, transfer-ids and delivery-counts (sections 2.5.6, 2.6.7, 2.8.10), AMQP
0-10's ids of commands."""

from ..shim import const

MASK = const(0xFFFFFFFF)
_HALF = const(0x80000000)


def after(number, count):
    """The number `count` behind another one."""
    return (number + count) & 0xFFFFFFFF


def distance(number, other):
    """How far `other` lies behind `number`, from -2**31 to 2**31 - 1: below 0 where it lies before it."""
    ahead = (other - number) & 0xFFFFFFFF
    return ahead - 0x100000000 if ahead & _HALF else ahead
