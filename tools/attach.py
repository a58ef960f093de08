"""`leveret attach`: gives every AMQP client on this computer the broker at the other end of a serial line.

    leveret attach /dev/ttyACM0 [--listen amqp://127.0.0.1:5673] [--baud N] [--speed N]
    leveret attach /dev/ttyUSB0 --address 1 --listen amqp://127.0.0.1:5673 --address 2 --listen amqp://127.0.0.1:5674   (RS-485)

Laws: it carries octets and knows nothing of AMQP; each client has a connection of its own on the line, so a slow one stops no other.
`ready URL` on standard output, one line for each listener, as soon as the broker behind it answers; sentences for people on standard error.
A device or port that cannot be opened at the start is one sentence and exit status 1. A device that is pulled out later is waited for:
clients stay connected for a minute, and nothing is lost; when the other end began anew their connections end. A client that comes while
nobody answers, or when the line has no place for another one, is closed at once. SIGTERM and Ctrl-C end all connections; exit status 0.
"""

import argparse
import signal
import sys
import time
from typing import Any

from leveret import c_accel
from leveret.ports.clock import now_ms
from leveret.ports.joint import Joint
from leveret.ports.serial_line import LineFailed, SerialLine, new_bus, new_link
from leveret.ports.tcp import Loop

from . import address
from .usage import UsageError

LISTEN_DEFAULT = "amqp://127.0.0.1:5673"
BUFFER_SIZE = 16384
CLIENT_COUNT_MAX = 1024
STEP_MS = 100
GOODBYE_MS = 1000
SILENCE_MS = 3000


def whole_number(least, most):
    """An argument that is a whole number in a range; for argparse."""

    def read(text):
        if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {least} to {most}")
        return int(text)

    return read


def add_arguments(parser):
    """The subcommand's arguments."""
    parser.add_argument("device", help="the serial device, as /dev/ttyACM0 or /dev/ttyUSB0")
    parser.add_argument(
        "--listen",
        action="append",
        metavar="URL",
        help=f"amqp://HOST:PORT for clients, port 0 takes a free one "
        f"(default {LISTEN_DEFAULT}); with --address one for each, in the same order",
    )
    parser.add_argument(
        "--baud",
        type=whole_number(1, address.BAUD_MAX),
        default=address.BAUD_DEFAULT,
        metavar="N",
        help=f"the speed where both ends meet (default {address.BAUD_DEFAULT})",
    )
    parser.add_argument(
        "--speed",
        type=whole_number(1, address.BAUD_MAX),
        default=0,
        metavar="N",
        help="change to this speed, or the highest that the other end can do below it",
    )
    parser.add_argument(
        "--address",
        action="append",
        type=whole_number(1, 255),
        metavar="N",
        help="RS-485: the station with this address on a line that several share; may be given again",
    )


def settings(options):
    """(TcpAddress, station's address or 0) for each listener. Raises UsageError."""
    places = [address.parse(url) for url in options.listen or [LISTEN_DEFAULT]]
    for place in places:
        if not isinstance(place, address.TcpAddress):
            raise UsageError(f"--listen {place.url()} cannot be: clients come over TCP, as {LISTEN_DEFAULT}")
    stations = options.address or [0]
    if len(set(stations)) < len(stations):
        raise UsageError("an --address is given twice; each station has its own")
    if len(places) != len(stations):
        raise UsageError(
            f"{len(stations)} station(s) and {len(places)} listener(s): give one --listen URL for each --address"
            if options.address
            else "one line has one listener: give --listen once, or an --address for each"
        )
    if options.address and options.speed:
        raise UsageError("the stations of a line that several share have one speed: give --baud, and no --speed")
    return list(zip(places, stations))


class Door:
    """One listener and the link that its clients go through."""

    def __init__(self, loop, place, link, where):
        self._link = link
        self._where = where
        self._sessions = 0
        self._ready = False
        self._refusing = False
        self._silent_since = now_ms()
        self._told_silence = False
        _, port = loop.listen(place.host, place.port, self._accept)
        self._url = place.url(port)

    def _accept(self, stream):
        joint = Joint(BUFFER_SIZE)
        if self._link.open(joint.far):
            self._refusing = False
            return joint.near
        if not self._refusing:
            count = self._link.streams.count
            why = f"{count} are open, all that both ends have room for" if self._link.is_open else "nobody answers there"
            say(f"a client's connection to {self._where} was refused: {why}")
        self._refusing = True
        return None

    def look(self, plugged_in):
        """Tell of what has changed."""
        link = self._link
        if link.session_count != self._sessions:
            if self._ready:
                say(f"the broker at {self._where} began anew: connections through {self._url} have ended, new ones can be made")
            self._sessions = link.session_count
        if link.is_open and not self._ready:
            self._ready = True
            print("ready " + self._url, flush=True)
        if link.is_open or not plugged_in:
            self._silent_since = now_ms()
            self._told_silence = False
        elif not self._told_silence and (now_ms() - self._silent_since) & 0x3FFFFFFF >= SILENCE_MS:
            self._told_silence = True
            say(link.trouble or f"nobody answers at {self._where} yet: is the broker running there, at this speed?")


def say(sentence):
    """For people."""
    print("leveret attach: " + sentence, file=sys.stderr, flush=True)


def open_all(options, wanted, loop):
    """(SerialLine, [Door]). Raises LineFailed; UsageError for a TCP port that cannot be had."""
    if options.address:
        endpoint: Any = new_bus(options.baud, options.address)
        links = endpoint.links
    else:
        endpoint = new_link(None, options.baud, active=True, speed=options.speed)
        links = (endpoint,)
    line = SerialLine(loop, options.device, options.baud, endpoint, links)
    doors = []
    for (place, station), link in zip(wanted, links):
        where = f"{options.device}, station {station}" if station else options.device
        try:
            doors.append(Door(loop, place, link, where))
        except OSError as error:
            raise LineFailed(f"cannot listen on {place.url()}: {address.explain(error)}") from None
    return line, doors


def serve(loop, line, doors, asked):
    """Carry octets until `asked` holds something."""
    trouble = ""
    while not asked:
        loop.step(min(STEP_MS, line.wait_ms()))
        line.tick(now_ms())
        if line.trouble != trouble:
            say(line.trouble or ("the line is back" if trouble else ""))
            trouble = line.trouble
        for door in doors:
            door.look(line.plugged_in)


def say_goodbye(loop, line):
    """End the sessions, and let the other end hear it, for a second at most."""
    loop.stop_listening()
    line.leave()
    limit = time.monotonic() + GOODBYE_MS / 1000
    while line.is_leaving() and time.monotonic() < limit:
        loop.step(min(STEP_MS, line.wait_ms()))
        line.tick(now_ms())


def run(options):
    """Attach until told to end; the exit status."""
    wanted = settings(options)
    c_accel.install()  # before there are links
    asked = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _: asked.append(number))
    loop = Loop(CLIENT_COUNT_MAX + 1)
    try:
        line, doors = open_all(options, wanted, loop)
        serve(loop, line, doors, asked)
        say_goodbye(loop, line)
    except LineFailed as error:
        say(str(error))
        return 1
    finally:
        loop.close()
    return 0
