"""What the tables keep of a 0-10 message's delivery-properties (AMQP 0-10 section 2.IV.2): kind and lifetime, at every border."""

from leveret.core.amqp_0_10.properties import DELIVERY, columns
from leveret.core.memory import layout

NOW = 1_700_000_000  # seconds since 1970


def of(**fields):
    """(kind, lifetime) of a message with these delivery-properties."""
    return columns({DELIVERY: fields}, NOW)


def test_a_message_without_properties_is_transient_and_lives_for_ever():
    assert columns({}, NOW) == columns({DELIVERY: None}, NOW) == of() == (0, layout.NONE)


def test_delivery_modes_and_priorities():
    """delivery-mode: 1 non-persistent, 2 persistent; priority: 0 to 9, and lowest is not none."""
    assert of(delivery_mode=1) == (0, layout.NONE) and of(delivery_mode=2) == (layout.KIND_DURABLE, layout.NONE)
    for priority in range(10):
        kind = layout.KIND_HAS_PRIORITY | priority << layout.KIND_PRIORITY
        assert of(priority=priority) == (kind, layout.NONE)
        assert of(priority=priority, delivery_mode=2) == (kind | layout.KIND_DURABLE, layout.NONE)


def test_lifetimes():
    """ttl: milliseconds, and 0 is a lifetime; what a column has no room for stands there in seconds, below -1."""
    for ttl, lifetime in (
        (0, 0),
        (1, 1),
        (layout.MASK, layout.MASK),
        (layout.MASK + 1, -2 - (layout.MASK + 1) // 1000),
        (2**62, -layout.MASK),
    ):
        assert of(ttl=ttl) == (0, lifetime), ttl


def test_a_moment_of_expiry_is_a_lifetime_from_now_on():
    """expiration: a datetime, in seconds (section 1.3) or, as Qpid's Java client writes it, in milliseconds; ttl goes first."""
    for expiration, lifetime in (
        (NOW + 5, 5000),
        (NOW, 0),
        (NOW - 1, 0),
        (1, 0),
        (NOW * 1000 + 7, 7),
        (NOW * 1000 - 7, 0),
        (0, layout.NONE),
        (None, layout.NONE),
    ):
        assert of(expiration=expiration) == (0, lifetime), expiration
    assert of(expiration=NOW + 5, ttl=3) == (0, 3) and of(expiration=NOW + 5, ttl=0) == (0, 0)
    assert columns({DELIVERY: {"expiration": 99_999_999_999}}, 99_999_999_990) == (0, 9000), "seconds, up to the year 5138"
    assert columns({DELIVERY: {"expiration": 100_000_000_000}}, 99_999_999) == (0, 1000), "milliseconds"
