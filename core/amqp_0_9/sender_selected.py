"""Sender-selected distribution (RabbitMQ): the headers CC and BCC name further routing keys; BCC is not for the receivers to see."""

from ..errors import PRECONDITION_FAILED, ProtocolError
from ..message.annotations import GONE
from ..message.type_words import type_word

NAMES = ("CC", "BCC")


def read(session, channel, headers):
    """Keep the keys for routing: the annotations that hide BCC, where there is any.

    A header of these names that is no array is precondition-failed; in the array only texts count.
    """
    copies = []
    for name in NAMES:
        if name in headers:
            copies.extend(keys_of(name, headers[name]))
    size = sum([2 + len(key) for key in copies])
    size_max = session.broker.limits.copy_size_max
    if size > size_max:
        raise ProtocolError(
            PRECONDITION_FAILED,
            "invalid message: CC and BCC have %d octets of routing keys with two for each; this broker takes %d" % (size, size_max),
        )
    channel.copies = b"".join([bytes((len(key) >> 8, len(key) & 255)) + key for key in copies])
    return {"headers": {"BCC": GONE}} if "BCC" in headers else {}


def keys_of(name, value):
    """The routing keys in one header."""
    if not isinstance(value, list):
        raise ProtocolError(PRECONDITION_FAILED, 'invalid message: {unacceptable_type_in_header,"%s",%s}' % (name, type_word(value)))
    return [key.encode("utf-8") if isinstance(key, str) else key for key in value if isinstance(key, (str, bytes))]
