"""The differences between interpreters, in one place.

CPython and MicroPython give the core the same names from here; nothing else in core/ asks which interpreter it runs on.
"""

import gc
import hashlib
import json
import sys

try:
    from micropython import const
except ImportError:

    def const(value):  # type: ignore[misc]  # MicroPython's stub has a type variable here, and the two must be alike
        """MicroPython's compile-time constant: the value itself elsewhere."""
        return value


MICROPYTHON = sys.implementation.name == "micropython"

_TIME_MASK = const(0x3FFFFFFF)


def elapsed(now, then):
    """Milliseconds from `then` to `now`; both are 30-bit wrapping counters at most 2^29 ms (6 days) apart.

    A `then` that lies in the future gives a negative number.
    """
    difference = (now - then) & _TIME_MASK
    return difference - 0x40000000 if difference & 0x20000000 else difference


def after(now, duration_ms):
    """The wrapping time `duration_ms` milliseconds after `now`."""
    return (now + duration_ms) & _TIME_MASK


def platform():
    """The interpreter and its version, for people."""
    return "%s %s" % (sys.implementation.name, ".".join([str(each) for each in sys.implementation.version[:3]]))


def collect():
    """Free what nobody refers to any more."""
    gc.collect()


def report(error):
    """Print the trace of an error of ours; what peers do wrong never comes here."""
    if MICROPYTHON:
        sys.print_exception(error)
    else:
        sys.excepthook(type(error), error, error.__traceback__)


if MICROPYTHON:
    import io

    def place_of(error):
        """Where an error was raised, as "line 33 of expiry.py"."""
        trace = io.StringIO()
        sys.print_exception(error, trace)
        lines = [line for line in trace.getvalue().split("\n") if line.startswith("  File ")]
        parts = lines[-1].split('"') if lines else ("", "?", ", line 0,")
        return "line %s of %s" % (parts[2].split(",")[1][6:], parts[1].split("/")[-1])
else:

    def place_of(error):
        """Where an error was raised, as "line 33 of expiry.py"."""
        trace = error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        if trace is None:
            return "at no known place"
        return "line %d of %s" % (trace.tb_lineno, trace.tb_frame.f_code.co_filename.rsplit("/", 1)[-1])


if MICROPYTHON:

    def number_of(identity):
        """A number of 64 bits for something hashable: always the same while the program runs, and another's is another."""
        return int.from_bytes(hashlib.sha256(repr(identity).encode()).digest()[:8], "big")
else:

    def number_of(identity):
        """A number of 64 bits for something hashable: always the same while the program runs, and another's is another."""
        return hash(identity) & 0xFFFFFFFFFFFFFFFF


if hasattr(hashlib, "pbkdf2_hmac"):

    def pbkdf2_sha256(password, salt, rounds):
        """PBKDF2-HMAC-SHA-256 to 32 octets, in one call; None where the interpreter has none."""
        return hashlib.pbkdf2_hmac("sha256", password, salt, rounds)
else:
    pbkdf2_sha256 = None  # type: ignore[assignment]  # MicroPython has none: passwords.py then counts the rounds itself


if MICROPYTHON:
    json_text = json.dumps
else:

    def json_text(value):
        """JSON without spaces, characters as they are. Raises ValueError for what JSON cannot write."""
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


if MICROPYTHON:
    from array import array

    def octets(count):
        """`count` octets, all 0, as a writable view."""
        return memoryview(bytearray(count))

    def table(count):
        """`count` signed 32-bit integers, all 0, in one flat block."""
        return array("i", bytes(4 * count))

    def copy(target, at, source, start, size):
        """Copy `size` octets. A byte loop: slice assignment into a large buffer moves its whole tail on boards."""
        end = at + size
        while at < end:
            target[at] = source[start]
            at += 1
            start += 1

    def same(left, at, right, start, size):
        """True when `size` octets are equal."""
        end = at + size
        while at < end:
            if left[at] != right[start]:
                return False
            at += 1
            start += 1
        return True

    def quicker(function, form=None):
        """The form of a hot function that this interpreter is quicker with."""
        return function
else:
    import re
    from mmap import mmap
    from struct import Struct

    def pattern(octets):
        """A regular expression over octets, compiled: for forms of CPython's own, which take a whole value by one call."""
        return re.compile(octets, re.DOTALL)

    def octets(count):
        """`count` octets, all 0, as a writable view; the system gives its pages only when they are touched."""
        return memoryview(mmap(-1, count) if count >= 16384 else bytearray(count))

    def table(count):
        """`count` signed 32-bit integers, all 0, in one flat block of such octets."""
        return octets(4 * count).cast("i")

    def copy(target, at, source, start, size):
        """Copy `size` octets of a bytes-like `source` (best: a memoryview) into `target`."""
        target[at : at + size] = source[start : start + size]

    def same(left, at, right, start, size):
        """True when `size` octets are equal."""
        return left[at : at + size] == right[start : start + size]

    _write_number = Struct(">Q").pack_into

    def put_number(target, at, high, low):
        """See hot.put_number."""
        _write_number(target, at, high << 30 | low)

    def high_octets(source, at, end, ascii=bytes(range(128))):
        """See amqp_1_0/hot_in.high_octets."""
        return len(bytes(source[at:end]).translate(None, ascii))

    def quicker(function, form=None):
        """The form of a hot function that this interpreter is quicker with: one call instead of a look at each octet. It has the function's
        name, here or in the file beside the function's own whose name ends with _quicker; or `form` of struct, for a function that writes
        its arguments so behind `target` and `at`. Where there is none, as among the files of a board, it is the function itself."""
        if form is not None:
            return Struct(form).pack_into
        name = function.__name__
        try:
            return globals().get(name) or getattr(__import__(function.__module__ + "_quicker", None, None, (name,)), name)
        except ImportError:
            return function
