"""What is done to every octet of a serial line, in C (framing.c): the form of core/serial_link/stuffing.py that `install()` chooses."""

from . import owner
from ._hot import ffi, lib


class Framing:
    """As core/serial_link/stuffing.py's Plain has it."""

    name = "C"

    @staticmethod
    def octets(view):
        """The address of a buffer (a view of all of it); it stays valid as long as this is kept."""
        return ffi.from_buffer("uint8_t[]", owner(view))

    @staticmethod
    def integers(numbers):
        """The address of a reader's numbers."""
        return ffi.from_buffer("int32_t[]", owner(numbers))

    @staticmethod
    def check_16(octets, size, value):
        """See core/serial_link/stuffing.py, check_16."""
        return lib.leveret_check_16(ffi.from_buffer("uint8_t[]", octets), size, value)

    @staticmethod
    def unstuff(source, at, end, octets, numbers):
        """See core/serial_link/stuffing.py, unstuff."""
        return lib.leveret_unstuff(ffi.from_buffer("uint8_t[]", source), at, end, octets, numbers)

    @staticmethod
    def stuff(source, start, size, target, at, escaped, escaped_below):
        """See core/serial_link/stuffing.py, stuff."""
        return lib.leveret_stuff(ffi.from_buffer("uint8_t[]", source) + start, size, target, at, escaped, escaped_below)
