"""AMQP 0-9-1 among the families of protocols (core/wire/family.py)."""

from ..wire.family import Family
from ..wire.registry import register
from . import properties
from .session import Session

FAMILY = Family("AMQP 0-9-1", Session.dialect.HEADER, Session, properties)

register(FAMILY)
