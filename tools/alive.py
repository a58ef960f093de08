"""`leveret alive [URL]`: asks a broker for its first answer, without a log-in: a health check for containers and service managers.

The broker's connection.start (AMQP 0-9-1 sections 2.2.4, 1.4.2.1) comes from the loop that serves, so that one that hangs does not answer.
Exit status 0: it has answered; 1: it has not, and a sentence on standard error says why; 2: a mistake in the command line. Nothing is said
of alarms and full limits: a broker that is full is alive, and to start it again would help nobody.
"""

import select
import sys

from leveret.core.shim import elapsed
from leveret.ports.client_errors import ClientError
from leveret.ports.clock import now_ms
from leveret.ports.moving import open_stream
from leveret.ports.url import read_url

from .asking import check_url
from .cli import positive_seconds
from .usage import UsageError

URL_DEFAULT = "amqp://127.0.0.1:5672"
HEADER = b"AMQP\x00\x00\x09\x01"
START = b"\x01\x00\x00"  # a method frame of channel 0: four octets of its size, class 10, method 10
START_METHOD = b"\x00\x0a\x00\x0a"
START_SIZE = 11


def add_arguments(parser):
    """The subcommand's arguments."""
    parser.add_argument("--seconds", type=positive_seconds, default=5.0, metavar="N", help="wait so long for the answer (default 5)")
    parser.add_argument("url", nargs="?", default=URL_DEFAULT, metavar="URL", help=f"the broker's (default {URL_DEFAULT}), amqps:// too")


def first_octets(stream, timeout_ms):
    """The broker's first octets behind the header of 0-9-1: START_SIZE of them, which tell a broker of 0-9-1 from others, or fewer."""
    poll = select.poll()
    poll.register(stream.pollable, select.POLLIN | select.POLLOUT)
    started = now_ms()
    sent, octets, buffer = 0, b"", bytearray(START_SIZE)
    while len(octets) < START_SIZE:
        left_ms = timeout_ms - elapsed(now_ms(), started)
        if left_ms <= 0:
            break
        poll.poll(left_ms)
        if sent < len(HEADER):
            sent += stream.write(HEADER[sent:]) or 0
            poll.modify(stream.pollable, select.POLLIN)
        count = stream.read_into(memoryview(buffer)[len(octets) :])
        if count == 0:
            break
        octets = bytes(buffer[: len(octets) + (count or 0)])
    return octets


def run(options):
    """Ask; the exit status."""
    check_url(options.url)
    try:
        place = read_url(options.url)
    except ValueError as error:
        raise UsageError(str(error)) from None
    timeout_ms = int(options.seconds * 1000)
    try:
        stream = open_stream(place, timeout_ms)
        octets = first_octets(stream, timeout_ms)
        stream.close()
    except ClientError as error:
        print(f"leveret alive: {error}", file=sys.stderr)
        return 1
    if octets[:3] == START and octets[7:] == START_METHOD:
        return 0
    reason = "answers, and not as a broker of AMQP 0-9-1" if octets else f"has not answered in {options.seconds:g} s"
    print(f"leveret alive: {place.place()} {reason}", file=sys.stderr)
    return 1
