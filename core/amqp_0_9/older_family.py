"""AMQP 0-8 and 0-9 among the families of protocols (core/wire/family.py), behind 0-9-1: a peer of theirs has their sessions imported."""

from ..wire.family import Family
from ..wire.registry import register
from . import properties


def session(name):
    """A function that makes a session of older.py by the name of its class."""

    def made(connection):
        from . import older

        return getattr(older, name)(connection)

    return made


for title, header, class_ in (
    ("AMQP 0-8", b"AMQP\x01\x01\x08\x00", "Session08"),
    ("AMQP 0-8", b"AMQP\x01\x01\x09\x01", "Session08Plain"),  # as py-amqplib and php-amqplib send it
    ("AMQP 0-9", b"AMQP\x01\x01\x00\x09", "Session09"),
):
    register(Family(title, header, session(class_), properties))
