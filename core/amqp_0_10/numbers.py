"""Ids of our commands and delivery tags: the id of a transfer is its delivery's number (core/broker/numbered.py) less 1."""

from ..broker import numbered
from ..memory import serial


def tail(session):
    """The id of our next command: as many as we have sent, modulo 2**32."""
    return numbered.tail_number(session)


def of(session, entry):
    """The id of the transfer of an unsettled entry."""
    return serial.after(numbered.number_of(session, entry), -1)


def entry_from(session, first, last):
    """The oldest unsettled entry whose transfer's id is from `first` to `last`; NONE: there is none."""
    return numbered.entry_from(session, serial.after(first, 1), serial.after(last, 1))
