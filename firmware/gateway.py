"""The gateway: settings, broker, store, network and lines brought together, and the main loop.

Laws: a part that cannot start says why in one sentence on the console, and the REPL has the board; nothing waits for a network: the broker
serves its
serial line meanwhile; whatever ends the loop closes the store, and the watchdog is fed by a timer from then on.
"""

import gc
import os
import sys

from ..core.access.permissions import Access, User, default
from ..core.broker.broker import Broker
from ..core.connection.connection import Connection
from ..core.errors import words_of
from ..core.limits import BOARD, Limits, pattern_size_max
from ..core.shim import elapsed
from ..ports import clock as port_clock
from . import resets, settings, watchdog
from .rounds import Rounds
from .say import CANNOT_START, READY, CannotStart, say

if False:  # for the type checker alone
    from typing import Any

NONCE_SIZE = 16
STEP_MS = 50
STOP_MS = 500  # for closing connections with the handshake
CLOSE_TEXT = "the broker is stopped from the console"
LOOPBACK = "127.0.0.1"
LOOP_BESIDE = 1  # streams beside the broker's connections: the serial line


def limits_of(given):
    """The Limits of the settings. Raises CannotStart."""
    numbers = dict(BOARD)
    numbers.update(given)
    try:
        return Limits(**numbers)
    except ValueError as error:
        raise CannotStart("limits: %s" % error) from None


def access_of(users, limits, nonce):
    """The Access of the settings' users. Raises CannotStart."""
    if not users:
        return default(limits, nonce)
    made = []
    for user in users:
        stored = user.get("password_hash")
        rights = None
        if "configure" in user or "write" in user or "read" in user:
            rights = (user.get("configure", ""), user.get("write", ""), user.get("read", ""))
        try:
            if stored is not None:
                from ..core.access import passwords

                stored = passwords.stored(stored)
            made.append(User(user["name"], stored, user.get("tags", ()), rights, limits.granted_count_max, pattern_size_max(limits)))
        except (KeyError, ValueError) as error:
            raise CannotStart("users: %s" % error) from None
    return Access(made, nonce)


class Gateway:
    """One board's broker. Raises CannotStart, and the errors of the settings' parts."""

    store: "Any"
    interface: "Any"
    clock: "Any"
    sensor: "Any"
    line: "Any"
    bridges: "Any"
    families: "Any"  # where a draft is served: its listener's

    def __init__(self, wanted):
        self.wanted = wanted
        self.limits = limits_of(wanted["limits"])
        self.broker = self._make_broker()
        self.store = self.interface = self.clock = self.sensor = self.line = self.bridges = self.families = None
        if wanted["version"]:
            from ..core.amqp_0_9.drafts.family import families

            self.families = families(wanted["version"])
        self._to_bridge = []  # Settings of bridges that have not begun: there was no network yet
        if wanted["bridges"]:
            from . import uplink

            self._to_bridge = uplink.checked(wanted["bridges"])
        connections = self.limits.connection_count_max + self.limits.surplus_count_max
        self.loop = Rounds(connections + LOOP_BESIDE + len(self._to_bridge), self.broker)
        self._said = {}
        self._parts = []  # (name, what is called with the time in each round)
        try:
            self._open_parts(wanted)
        except BaseException:  # said by who began it; what has been opened is closed
            if self.store is not None:
                self.store.close()
            raise

    def _open_parts(self, wanted):
        if wanted["store"] is not None:
            from . import keeping

            self.store, report = keeping.keep(self.broker, wanted["store"])
            self._parts.append(("the log", self._watch_log))
            say(report)
        if wanted["sensor"] is not None:
            from .sensor import Sensor

            self.sensor = Sensor(self.broker, wanted["name"], wanted["sensor"], say)
            self._parts.append(("the sensor", self.sensor.step))
        if wanted["serial"] is not None:
            self._open_line(wanted["serial"])
        self._open_network()
        self._open_page()
        if "slots" in sys.modules:  # boot.py has put this version on trial
            from .trial import Trial

            self._parts.append(("the update", Trial(self).tend))

    def _make_broker(self):
        gc.collect()
        nonce = os.urandom(NONCE_SIZE)
        try:
            broker = Broker(self.limits, nonce, access_of(self.wanted["users"], self.limits, nonce), say)
            broker.places.make_buffers(self.limits.connection_count_max)  # now: later the heap may have no hole that is large enough
            return broker
        except MemoryError:
            gc.collect()
            free = gc.mem_free() if hasattr(gc, "mem_free") else 0
            raise CannotStart(
                "the limits ask for more than the %d KiB that are free: make them smaller, as arena_size" % (free >> 10)
            ) from None

    def _open_line(self, wanted):
        from . import line

        stream, baud = line.open_line(wanted)
        self.line = stream
        # The peer at the other end of our cable is as near as loopback: guest may log in.
        self.loop.add(stream, line.new_link(lambda: self._admitted(Connection(self.broker, stream.name, True)), baud, self.limits))
        say(READY + "serial %s at %d baud" % (stream.name, baud))

    def _open_page(self):
        """Answer `leveret status`, on boards that carry that."""
        try:
            from . import status_page
        except ImportError:
            return
        self.broker.page = status_page.Page(self)

    def _open_network(self):
        wanted = self.wanted
        if wanted["listen"] is None:
            return
        if wanted["wifi"] is not None or wanted["ethernet"] is not None:
            from .interface import Interface

            self.interface = Interface(wanted)
            self._parts.append(("the network", self._watch_network))
        else:
            self._listen(wanted["listen"]["host"])
        if wanted["ntp"]:
            from .clock import Clock

            self.clock = Clock(wanted["ntp"], say)
            self._parts.append(("the clock", self._watch_clock))

    def _listen(self, address):
        """Serve AMQP; done once, and said again whenever the board's address is another. Raises CannotStart."""
        place = self.wanted["listen"]
        if not self.loop.listeners:
            try:
                self.loop.listen(place["host"], place["port"], self._accept)
            except OSError as error:
                raise CannotStart("cannot listen on %s:%d: %s" % (place["host"], place["port"], error)) from None
        say(READY + "amqp://%s:%d" % (address, place["port"]))
        if self._to_bridge:
            from . import uplink

            self.bridges = uplink.start(self.loop, self.broker, self._to_bridge)
            self._parts.append(("the bridges", self._step_bridges))
            self._to_bridge = []

    def _accept(self, stream):
        # Not every interpreter tells a peer's address; peers of a loopback listener are on this machine.
        near = stream.from_loopback or self.wanted["listen"]["host"] == LOOPBACK
        return self._admitted(Connection(self.broker, stream.name, near, stream.address))

    def _admitted(self, connection):
        """A connection, or None when the broker has no place for it."""
        if connection.closed:
            return None
        if self.families is not None:
            connection.families = self.families
        return connection

    # The main loop

    def step(self):
        """Run one round: move octets, let every part do due work, feed the watchdog."""
        wait_ms = STEP_MS if self.store is None else min(STEP_MS, self.broker.journal.wait_ms())
        self.loop.step(wait_ms if self.bridges is None else self.bridges.wait_ms(wait_ms))
        now = port_clock.now_ms()
        for name, tend in self._parts:
            try:
                tend(now)
            except Exception as error:  # an error of ours, or the heap is used up: told, and all else serves on
                self.broker.guard.trouble("%s", name, error)
        watchdog.feed()

    def _watch_clock(self, now):
        self.clock.tick(now, self.interface is None or self.interface.address != "")

    def _step_bridges(self, now):
        self.bridges.step()

    def _watch_log(self, now):
        self._tell("the log", self.broker.journal.log.trouble, "the log can be written again")

    def _watch_network(self, now):
        before = self.interface.address
        sentence = self.interface.tick(now)
        if sentence is not None:
            say(sentence)
        if self.interface.address and self.interface.address != before:
            self._listen(self.interface.address)

    def _tell(self, subject, trouble, good):
        """Tell a part's trouble, or its end, once."""
        if trouble != self._said.get(subject, ""):
            self._said[subject] = trouble
            say(trouble or good)

    def stop(self):
        """Close connections with the handshake, write the log to the medium, and release all parts: the store is closed whatever fails.

        The line goes first: input of a console from now on is for the REPL.
        """
        try:
            for end in (self._end_connections, self.loop.close):
                try:
                    end()
                except Exception as error:  # an error of ours: told, and what is to be kept is written all the same
                    say("connections could not be closed: %s" % words_of(error))
        finally:
            if self.store is not None:
                try:
                    if not self.broker.journal.finish():
                        say("not everything could be written: %s" % self.broker.journal.log.trouble)
                finally:
                    self.store.close()

    def _end_connections(self):
        self.loop.stop_listening()
        for slot in list(self.loop.used):
            if self.line is not None and self.loop.streams[slot] is self.line:
                self.loop.endpoints[slot].received(0)
                self.loop.remove(slot)
        if self.bridges is not None:
            self.bridges.stop(STOP_MS)
        for connection in list(self.broker.connections):
            connection.close(CLOSE_TEXT)
        began = port_clock.now_ms()
        while self.broker.connections and elapsed(port_clock.now_ms(), began) < STOP_MS:
            self.loop.step(STEP_MS)
        for connection in list(self.broker.connections):  # peers that do not answer: their exclusive queues go all the same
            connection.finish()


def start():
    """The Gateway of this board's settings, or None after saying why there is none."""
    try:
        wanted = settings.load()
        if wanted["watchdog_ms"]:
            watchdog.rest()
        return Gateway(wanted)
    except CannotStart as error:
        reason = str(error)
    except MemoryError:
        reason = "there is not enough memory: make the limits smaller"
    except Exception as error:  # the console tells any error, and the prompt comes
        reason = "%s: %s" % (type(error).__name__, error)
    say(CANNOT_START + reason)
    resets.note(CANNOT_START + reason)
    return None


def main():
    """Start and serve until Ctrl-C; then, or when it cannot start, the REPL has the board: true when the console has stopped it.

    After an error of our own the watchdog, where there is one, starts the board anew.
    """
    gateway = None
    try:
        resets.started()
        gateway = start()
        while gateway is not None:
            gateway.step()
        watchdog.rest()
        return False
    except KeyboardInterrupt:
        watchdog.rest()
        say("stopped; Ctrl-D starts it again")
        return True
    except Exception as error:  # an error of ours: kept for the next look, and the console has its trace
        resets.failed(error)
        raise
    finally:
        if gateway is not None:
            gateway.stop()
