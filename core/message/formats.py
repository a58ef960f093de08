"""Formats of messages' properties: each message says in its kind (layout.MESSAGE_KIND) whose properties it has, and they are read so.

A row of FORMATS is a format's number and the file of core/ that reads and writes it; the file is imported when a rule reads the first
message of the format. Numbers stand in the log, and are never given twice. Such a file has

    check(buffer, at, end)          raises ProtocolError for properties that are not valid
    decode(buffer, at, end)         the properties by name, a dict
    field_in(octets, name)          one of them, or None
    header(octets, name)            one of the headers, or None; few octets are read where there is none
    encode(given)                   the opposite
    merge(octets, annotations)      properties with annotations over them (core/message/annotations.py), else octet for octet as they are
"""

from ..parts import part

BASIC = 0  # class basic of AMQP 0-9 and 0-9-1
AMQP_1_0 = 2  # sections of AMQP 1.0
AMQP_0_10 = 3  # header segments of AMQP 0-10
STORED = 4  # those of another format, of a message whose body is a staged content

FORMATS = {
    BASIC: "amqp_0_9.properties",
    AMQP_1_0: "amqp_1_0.properties",
    AMQP_0_10: "amqp_0_10.properties",
    STORED: "staging.stored",
}
NUMBER = 255  # the bits of a kind that say it

known: "dict" = {}


def format_of(kind):
    """The reader of the properties of messages of this kind; None where this build does not carry it."""
    number = kind & NUMBER
    if number not in known:
        known[number] = part(FORMATS[number]) if number in FORMATS else None
    return known[number]
