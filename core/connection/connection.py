"""One connection of the broker: the endpoint contract (DESIGN.md section 1) around a session of some protocol.

It owns the two buffers and the states before there is a session and after it: sniffing, refused, closed. A broken connection stays broken,
and what goes wrong inside is this connection's alone: an error of ours closes it with a clear word and a counter.
"""

from ..errors import INTERNAL_ERROR, RESOURCE_ERROR, ProtocolError
from ..parts import part
from ..shim import elapsed
from ..wire.family import MORE, SNIFF_MAX
from ..wire.installed import FAMILIES
from ..wire.registry import sniff

if False:  # for the type checker alone
    from typing import Any

EMPTY = memoryview(b"")

FINISH_ATTEMPTS = 3

LINGER_MS = 3000  # how long a connection that was told to close may take to answer


class Connection:
    """An endpoint for one peer of `broker`. `name`: text for messages; `from_loopback`: guest may log in; `address`: where it comes from,
    refused for a while when log-ins from there keep failing ("": nothing that could be refused); `identities`: a function that gives the
    names in the peer's TLS certificate once there is one, or None. `user` (core/access/permissions.py) is who has logged in.

    `closed` is true at once when the broker has no place for it.
    """

    session: "Any"
    session_process: "Any"
    session_room: "Any"
    session_tick: "Any"
    receive: "Any"
    send: "Any"
    # What few connections change before they end, and what is read rarely, stands here: on a board an attribute costs 8 octets of each
    # connection, on CPython the way to one of the class takes five times as long.
    ending_since = 0  # broker.now then
    lingering = False  # it ends later: a stream closed with unread input would take back what was sent
    identities: "Any" = None
    exclusive_queues: "Any" = ()
    queues_declared = 0
    bindings_made = 0

    def __init__(self, broker, name="", from_loopback=True, address="", identities=None):
        self.broker = broker
        self.name = name
        self.from_loopback = from_loopback
        self.address = address
        if identities is not None:
            self.identities = identities
        self.user = None
        self.session = self.session_process = self.session_room = self.session_tick = None
        self.closed = False
        self.ending = False  # no more input is looked at; what is pending is sent, then the stream ends
        self.reading = True  # false: the peer is slowed
        self.has_turn = True  # false: it has frames, and others have their turn before it goes on
        self.gone = False  # the peer is; what came before that has its turns yet
        self.started = broker.now
        self.last_received = broker.now
        self.last_sent = broker.now
        pair = broker.places.attach(self)
        if pair is None:
            self.closed = True
            self.receive = self.send = None
        else:
            self.receive, self.send = pair

    # The endpoint contract

    def writable(self):
        """Where to receive into; empty while the peer is slowed or gone."""
        if self.closed or self.gone or not self.reading:
            return EMPTY
        return self.receive.writable()

    def received(self, count):
        """Take `count` octets; 0: the peer has gone."""
        if self.closed:
            return
        if count == 0:
            self.gone = True
            if self.has_turn:
                self.finish()
            return  # what came before the end counts, and waits for its turns
        self.receive.end += count
        self.last_received = self.broker.now
        if self.has_turn:
            self.process()

    def takes_in(self):
        """True when what comes next is so much of one body that `take_in` is to read it."""
        return self.session is not None and self.session.has_intake and self.session.takes_in()

    def take_in(self, descriptor):
        """Have the engine read from a socket, straight to where a body goes: the octets read; None: none now; 0: the peer is gone."""
        count = self.session.take_in(descriptor)
        if count:
            self.last_received = self.broker.now
            self.guarded(self.session.took_in)
        return count

    def pending(self):
        """What waits to be sent."""
        return EMPTY if self.send is None else self.send.pending()

    def sent(self, count):
        """`count` octets are gone; there may be room for what waits."""
        if self.send is None:
            return
        self.send.sent(count)
        self.last_sent = self.broker.now
        if self.closed:
            return
        if self.ending and not self.lingering and self.send.start == self.send.end:
            self.finish()
            return
        if self.session is not None:
            self.guarded(self.session_room)
            if self.has_turn and (not self.reading or self.receive.start != self.receive.end):
                self.process()

    def tick(self, now):
        """Time passes: milliseconds until it has to be told again if nothing happens, None: soon."""
        if self.closed:
            return None
        if self.ending:
            if elapsed(now, self.ending_since) > LINGER_MS:
                self.finish()
            return None
        if self.session is None:
            left = self.broker.limits.login_timeout_ms - elapsed(now, self.started)
            if left < 0:
                self.finish()
            return max(left + 1, 0)
        return self.guarded(self.session_tick)

    def close(self, text="the broker is closing"):
        """Begin to close from our side, with the protocol's words."""
        if self.closed or self.ending:
            return
        if self.session is None:
            self.finish()
        else:
            self.session.shut(text)

    # What the broker asks

    def sessions(self):
        """The open sessions of its protocol (0-9-1: channels)."""
        return () if self.session is None else self.session.sessions()

    def resume(self):
        """The broker may have room again for what this connection holds back."""
        if not self.closed:
            self.send.touch()
            if self.has_turn:
                self.process()

    def wait_for_turn(self):
        """Frames are left when others are to have their turn: have the broker call `go_on`."""
        if self.has_turn:
            self.has_turn = False
            self.broker.behind.append(self)

    def go_on(self):
        """It is this connection's turn again."""
        self.has_turn = True
        if not self.closed:
            self.send.touch()
            self.process()
            if self.gone and self.has_turn:
                self.finish()

    # Inside

    def process(self):
        """Look at what has been received until it is incomplete, or the session holds."""
        if self.ending:
            self.receive.reset()
            return
        if self.session is None:
            try:
                if not self.begin():
                    return
            except Exception as error:  # an error of ours ends this connection alone
                self.broke(error)
                return
        self.guarded(self.session_process)

    def guarded(self, action):
        """Run a part of the session: what it answers, None when it failed; whatever goes wrong in it stays with this connection."""
        try:
            return action()
        except ProtocolError as error:
            self.fail(error)
        except Exception as error:  # an error of ours ends this connection alone
            self.broke(error)

    def broke(self, error):
        """An error of ours, or the heap is used up: say so, count it, and close this connection only. Never raises."""
        self.broker.guard.trouble("connection %s", self.name, error)
        if self.session is None or self.ending:
            self.finish()
            return
        try:
            if isinstance(error, MemoryError):
                told = ProtocolError(RESOURCE_ERROR, "the broker is out of memory", True)
            else:
                told = ProtocolError(INTERNAL_ERROR, "an error of this broker: %r" % (error,), True)
        except Exception:  # no memory for the words
            self.finish()
            return
        self.fail(told)

    def fail(self, error):
        """Close with the protocol's words for an error, or without any when that raises."""
        try:
            self.session.fail(error.condition, error.text)
        except Exception as again:  # no words: it ends without
            self.broker.guard.trouble("connection %s", self.name, again)
            self.finish()

    def begin(self):
        """Sniff the protocol; true when there is a session. Octets that no family knows are answered as 0-9-1 section 4.2.2 has it."""
        receive = self.receive
        size = min(receive.available(), SNIFF_MAX)
        if size == 0:
            return False
        first = bytes(receive.octets[receive.start : receive.start + size])
        answer, family = sniff(first)
        if answer == MORE:
            return False
        if family is None:
            strangers = part("wire.strangers")
            if strangers is not None:
                self.broker.inform("%s: %s" % (self.name, strangers.told(first, FAMILIES)), True)
            self.send.write(FAMILIES[0].header)
            self.end()
            return False
        session = self.session = family.protocol(self)
        self.session_process, self.session_room, self.session_tick = session.process, session.room, session.tick  # made once: each is heap
        return True

    def end(self, lingering=False):
        """Take no more input; the stream ends when all is sent or (lingering) when the peer closes it or has had its time."""
        self.ending = True
        self.lingering = lingering
        self.reading = True
        self.ending_since = self.broker.now
        self.receive.reset()
        self.send.touch()

    def finish(self):
        """The connection is over: everything it held goes back."""
        if self.closed:
            return
        self.closed = True
        try:
            if self.user is not None:
                gone = "" if self.ending or self.session.closing else " without connection.close"
                self.broker.inform("%s: the connection of user '%s' has ended%s" % (self.name, self.user.name, gone))
        except Exception as error:  # an error of ours: told, and the connection still ends
            self.broker.guard.trouble("connection %s", self.name, error)
        if not self.gives_back():
            self.broker.guard.ended.append(self)

    def gives_back(self):
        """Give back what a connection that is over held: false when that raises; what it has given back by then it no longer has."""
        for _ in range(0 if self.session is None else FINISH_ATTEMPTS):
            try:
                self.session.lost()
                break
            except Exception as error:  # an error of ours: told, and tried again
                self.broker.guard.trouble("connection %s", self.name, error)
        else:
            if self.session is not None:
                return False
        self.send.touch()
        self.broker.places.detach(self)
        self.receive = self.send = None  # another connection has them now
        return True
