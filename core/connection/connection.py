"""One connection of the broker: the endpoint contract (DESIGN.md section 1) around a session of some protocol.

It owns the two buffers and the states before there is a session and after it: sniffing, refused, closed. A broken connection stays broken,
and what goes wrong inside is this connection's alone: an error of ours closes it with a clear word and a counter.
"""

from .. import states
from ..errors import INTERNAL_ERROR, RESOURCE_ERROR, ProtocolError
from ..parts import part
from ..shim import elapsed
from ..wire.family import MORE, SNIFF_MAX
from ..wire.installed import FAMILIES
from ..wire.registry import sniff
from .states import CONNECTION

if False:  # for the type checker alone
    from typing import Any

EMPTY = memoryview(b"")
patience = part("connection.patience")  # boards without room for it wait for ever

FINISH_ATTEMPTS = 3

LINGER_MS = 3000  # the time in which a peer must answer a close


class Connection:
    """An endpoint for one peer of `broker`. `name`: text for messages; `from_loopback`: guest may log in; `address`: the peer's address,
    refused for a while after repeated failed log-ins ("": never refused); `identities`: a function that returns the names in the peer's TLS
    certificate once there is one, or None. `user` (core/access/permissions.py): the user that has logged in.

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
    families = FAMILIES  # those that its listener serves
    identities: "Any" = None
    stuck_since = -1  # broker.now of the first tick since then that saw octets wait, and none of them gone
    is_refused = False  # logged in, and its user has as many open as he may (access/user_limits.py)
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
        self.state = "sniffing"  # states.CONNECTION
        self.closed = False  # the state "closed", as ports ask for it
        self.reading = True  # false: the peer is slowed
        self.has_turn = True  # false: it has unprocessed frames, and other connections have their turn first
        self.gone = False  # the peer has closed; frames that came before still have their turns
        self.started = broker.now
        self.last_received = broker.now
        self.last_sent = broker.now
        pair = broker.places.attach(self)
        if pair is None:
            self.state = "closed"
            self.closed = True
            self.receive = self.send = None
        else:
            self.receive, self.send = pair

    # The endpoint contract

    def writable(self):
        """The region to receive into; empty while the peer is slowed or gone."""
        if self.closed or self.gone or not self.reading:
            return EMPTY
        return self.receive.writable()

    def is_read(self):
        """True where `writable` is not empty."""
        return self.reading and not self.closed and not self.gone and self.receive.available() < self.receive.size

    def in_buffer(self):
        """As `writable`, the buffer itself (`room`, and `octets` from `end` on), None where nothing is read: a view is heap on a board."""
        return None if self.closed or self.gone or not self.reading else self.receive

    def received(self, count):
        """`count` octets were received; 0: the peer has closed."""
        if self.closed:
            return
        if count == 0:
            self.gone = True
            if self.has_turn:
                self.finish()
            return  # frames that came before the end count, and wait for their turns
        self.receive.end += count
        self.last_received = self.broker.now
        if self.has_turn:
            if self.state == "served":
                self.guarded(self.session_process)  # as `process`
            else:
                self.process()

    def take_in(self, descriptor, most):
        """Have the engine read from a socket, `most` octets (None: as many as it can), where the session wants that: the octets read; None:
        none now; 0: the peer is gone; -1: nothing was tried, and the port reads. There may be more when `most_taken` or more were read."""
        session = self.session
        if session is None or not session.has_intake or not self.reading or self.gone or self.closed:
            return -1
        count = session.take_in(descriptor, most)
        if count is not None and count > 0:
            self.last_received = self.broker.now
            self.guarded(session.took_in)
        return count

    @property
    def most_taken(self):
        """See `take_in`."""
        return self.session.most_taken

    def pending(self):
        """The octets that wait to be sent."""
        return EMPTY if self.send is None else self.send.pending()

    def out_buffer(self):
        """As `pending`, the buffer itself (`octets` from `start` to `end`) or None."""
        return self.send

    def sent(self, count):
        """`count` octets were sent; there may be room for waiting frames."""
        if self.send is None:
            return
        self.send.sent(count)
        self.last_sent = self.broker.now
        if self.stuck_since >= 0:
            self.stuck_since = -1
        if self.closed:
            return
        if self.state == "ending" and self.send.start == self.send.end:
            self.step("drained")
            return
        if self.session is not None:
            self.guarded(self.session_room)
            if self.has_turn and (not self.reading or self.receive.start != self.receive.end):
                self.process()

    def tick(self, now):
        """Time passes. Returns the milliseconds until the next call is due if nothing happens, None: soon."""
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
        wait_ms = self.guarded(self.session_tick)
        return wait_ms if patience is None else patience.bounded(self, now, wait_ms)

    def close(self, text="the broker is closing"):
        """Begin to close from our side, with the protocol's words."""
        self.step("close", text)

    @property
    def ending(self):
        """True when no more input is processed; pending octets are sent before the stream ends."""
        return self.state != "served" and self.state != "sniffing"

    # Calls by the broker

    def sessions(self):
        """The open sessions of its protocol (0-9-1: channels)."""
        return () if self.session is None else self.session.sessions()

    def resume(self):
        """The broker may have room again for the frames that this connection holds back."""
        if not self.closed:
            self.send.touch()
            if self.has_turn:
                self.process()

    def wait_for_turn(self):
        """Unprocessed frames are left at the end of the turn: have the broker call `go_on`."""
        if self.has_turn:
            self.has_turn = False
            self.broker.behind.append(self)

    def go_on(self):
        """Begin another turn of this connection."""
        self.has_turn = True
        if not self.closed:
            self.send.touch()
            self.process()
            if self.gone and self.has_turn:
                self.finish()

    # Inside

    def step(self, input_, *given):
        """Do what CONNECTION says of an input."""
        states.step(self, CONNECTION, self, input_, *given)

    def process(self):
        """Process received octets until a frame is incomplete, or the session holds."""
        if self.state == "served":
            self.guarded(self.session_process)  # as its row says, which changes no state: without the look-up
        else:
            self.step("octets")

    def serve(self):
        """The session processes received octets."""
        self.guarded(self.session_process)

    def sniff(self):
        """Find the family of the first octets."""
        try:
            if self.begin():
                self.step("known")
        except Exception as error:  # an error of ours ends this connection alone
            self.broke(error)

    def discard(self):
        """Drop what was received."""
        self.receive.reset()

    def ignore(self, *given):
        """Nothing changes."""

    def shut(self, text):
        """Close with the protocol's words."""
        self.session.shut(text)

    def guarded(self, action):
        """Run a part of the session. Returns its answer, None when it failed; any error in it ends only this connection."""
        try:
            return action()
        except ProtocolError as error:
            self.fail(error)
        except Exception as error:  # an error of ours ends this connection alone
            self.broke(error)

    def broke(self, error):
        """An error of ours, or the heap is used up: say so, count it, and close this connection only. Never raises."""
        self.broker.guard.trouble("connection %s", self.name, error)
        self.step("broke", error)

    def apologize(self, error):
        """Close with the protocol's words for an error of ours."""
        try:
            if isinstance(error, MemoryError):
                fault = ProtocolError(RESOURCE_ERROR, "the broker is out of memory", True)
            else:
                fault = ProtocolError(INTERNAL_ERROR, "an error of this broker: %r" % (error,), True)
        except Exception:  # no memory for the words
            self.finish()
            return
        self.fail(fault)

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
        answer, family = sniff(first, self.families)
        if answer == MORE:
            return False
        if family is None:
            strangers = part("wire.strangers")
            if strangers is not None:
                self.broker.inform("%s: %s" % (self.name, strangers.described(first, self.families)), True)
            self.send.write(self.families[0].header)
            self.end()
            if self.send.start == self.send.end:  # a family without a header: nothing is sent that it would wait for
                self.step("drained")
            return False
        session = self.session = family.protocol(self)
        self.session_process, self.session_room, self.session_tick = session.process, session.room, session.tick  # made once: each is heap
        return True

    def end(self, lingering=False):
        """Accept no more input; the stream ends when all is sent or (lingering) when the peer closes it or LINGER_MS have passed."""
        self.step("linger" if lingering else "end")

    def stop(self):
        """Process no more input."""
        self.reading = True
        self.ending_since = self.broker.now
        self.receive.reset()
        self.send.touch()

    def finish(self):
        """The connection is closed: release everything that it held."""
        self.step("over")

    def lose(self):
        """Release everything; the peer may have gone without the protocol's farewell."""
        self.release(None, "" if self.session.closing else " without connection.close")

    def release(self, _=None, how=""):
        """Release everything that the connection held; `how`: words about its end."""
        self.closed = True
        try:
            if self.user is not None:
                self.broker.inform("%s: the connection of user '%s' has ended%s" % (self.name, self.user.name, how))
        except Exception as error:  # an error of ours: told, and the connection still ends
            self.broker.guard.trouble("connection %s", self.name, error)
        if not self.gives_back():
            self.broker.guard.ended.append(self)

    def gives_back(self):
        """Release what a closed connection held: false when that raises; parts released by then stay released."""
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
