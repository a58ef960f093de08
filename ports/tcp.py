"""TCP, and the one loop that drives every endpoint (core/DESIGN.md sections 1 and 2): a poll over non-blocking streams in fixed slots.

Runs unchanged on CPython and MicroPython. It moves octets and keeps time; what they mean is the endpoints' affair. A stream that breaks
is its endpoint's `received(0)`; nothing a peer does raises out of `step`.
"""

import select

try:
    import socket
except ImportError:
    socket = None  # a board with serial lines only: the loop drives those

from . import clock

_IN = select.POLLIN
_OUT = select.POLLOUT
_ROUNDS = 32  # how often one step lets the broker deliver into what was just sent
_READS = 8  # reads of one stream in one step, so that a fast peer does not keep the others waiting
_TURN_MS = 2  # and reading does not go on when it has taken that long
_DELIVER_MS = 8  # nor delivering
TICK_MS = 100


class SocketStream:
    """A connected (or connecting) socket as a stream. `from_loopback`: the peer is this machine; `address`: its host, "" when not known."""

    def __init__(self, connected, name, from_loopback=False, address=""):
        connected.setblocking(False)
        self.pollable = connected
        self.name = name
        self.from_loopback = from_loopback
        self.address = address
        try:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except (OSError, AttributeError):
            pass  # MicroPython's unix port has no such option; the socket works without
        if hasattr(connected, "recv_into"):
            self._read = connected.recv_into
            self._write = connected.send
        else:
            self._read = connected.readinto
            self._write = connected.write

    def read_into(self, view):
        """Octets read; 0: the peer is gone; None: nothing now."""
        try:
            return self._read(view)
        except OSError as error:
            return None if would_block(error) else 0

    def write(self, view):
        """Octets written; None: none now; 0: the peer is gone."""
        try:
            return self._write(view)
        except OSError as error:
            return None if would_block(error) else 0

    def close(self):
        """Close the socket."""
        self.pollable.close()


class Listener:
    """A listening socket; `make_endpoint(stream)` gives the endpoint of an accepted connection, or None to refuse it.

    `make_stream(socket, name, from_loopback, address)` makes its stream, or raises OSError when the peer has gone.
    """

    def __init__(self, listening, make_endpoint, make_stream):
        listening.setblocking(False)
        self.pollable = listening
        self.make_endpoint = make_endpoint
        self.make_stream = make_stream

    def accept(self, loop):
        """Accept all connections that wait."""
        while True:
            try:
                connected, address = self.pollable.accept()
            except OSError:
                return
            try:
                stream = self.make_stream(connected, name_of(address), is_loopback(address), host_of(address))
            except OSError:
                connected.close()
                continue
            endpoint = self.make_endpoint(stream) if loop.has_slot() else None
            if endpoint is None or endpoint.closed:
                stream.close()
            else:
                loop.add(stream, endpoint)


class Loop:
    """Up to `slot_count` streams with their endpoints, any listeners, and the broker (or None) that is told the time and delivers."""

    def __init__(self, slot_count, broker=None):
        self.broker = broker
        self.poller = select.poll()
        self.streams = [None] * slot_count
        self.endpoints = [None] * slot_count
        self.masks = [0] * slot_count
        self.used = []  # slot numbers
        self.scanned = []  # those of them that are looked at in every step; the others say by their send buffers when they want to be
        self.awake = set()  # of the others, those to be looked at in this step
        self.take_touched = getattr(broker.tables.engine, "take_touched", None) if broker is not None else None
        self.by_key = {}  # what poll answers -> slot number, or what `accept` is called of: a Listener, a store that has done something
        self.listeners = []
        self.needy = []  # slots whose streams have `needs` of their own (DESIGN.md section 2)
        self.ticked = clock.now_ms()
        self.tell_time()

    # Streams

    def has_slot(self):
        """True when one more stream can be added."""
        return len(self.used) < len(self.streams)

    def add(self, stream, endpoint):
        """Drive `endpoint` over `stream` until it is closed. Raises OSError when all slots are taken."""
        if not self.has_slot():
            raise OSError("all %d stream slots are taken" % len(self.streams))
        slot = self.streams.index(None)
        self.streams[slot] = stream
        self.endpoints[slot] = endpoint
        self.masks[slot] = _IN | _OUT
        self.used.append(slot)
        buffer = getattr(endpoint, "send", None)
        if self.take_touched is not None and hasattr(buffer, "slot") and not hasattr(stream, "needs"):
            buffer.slot = slot
            self.awake.add(slot)
        else:
            self.scanned.append(slot)
        if hasattr(stream, "needs"):
            self.needy.append(slot)
        self.by_key[key_of(stream.pollable)] = slot
        self.poller.register(stream.pollable, _IN | _OUT)

    def listen(self, host, port, make_endpoint, make_stream=SocketStream):
        """Listen on a host and port (0: any free one): the (host, port) it became. Raises OSError. The rest: as Listener has it."""
        family, kind, _, _, address = resolve(host, port)
        listening = socket.socket(family, kind)
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(128)
        except OSError:
            listening.close()
            raise
        listener = Listener(listening, make_endpoint, make_stream)
        self.listeners.append(listener)
        self.by_key[key_of(listening)] = listener
        self.poller.register(listening, _IN)
        return host, listening.getsockname()[1] if hasattr(listening, "getsockname") else port

    def watch(self, source):
        """Call `source.accept(loop)` whenever its `pollable` can be read."""
        self.by_key[key_of(source.pollable)] = source
        self.poller.register(source.pollable, _IN)

    def connect(self, host, port, endpoint):
        """Connect `endpoint` without waiting; a connection that fails is its received(0). Raises OSError for a bad name."""
        family, kind, _, _, address = resolve(host, port)
        connecting = socket.socket(family, kind)
        stream = SocketStream(connecting, "%s:%d" % (host, port))
        try:
            connecting.connect(address)
        except OSError as error:
            if not would_block(error):
                stream.close()
                raise
        self.add(stream, endpoint)

    def remove(self, slot):
        """Close a slot's stream and free the slot."""
        stream = self.streams[slot]
        self.poller.unregister(stream.pollable)
        del self.by_key[key_of(stream.pollable)]
        stream.close()
        self.streams[slot] = self.endpoints[slot] = None
        self.used.remove(slot)
        if slot in self.scanned:
            self.scanned.remove(slot)
        if slot in self.needy:
            self.needy.remove(slot)

    def stop_listening(self):
        """Close all listeners."""
        for listener in self.listeners:
            self.poller.unregister(listener.pollable)
            del self.by_key[key_of(listener.pollable)]
            listener.pollable.close()
        self.listeners = []

    def close(self):
        """Close everything."""
        self.stop_listening()
        for slot in list(self.used):
            self.remove(slot)

    # Time and octets

    def step(self, timeout_ms):
        """Wait up to `timeout_ms` for something to do and do it."""
        left = TICK_MS - ((clock.now_ms() - self.ticked) & 0x3FFFFFFF)
        unread = self.unread() if self.needy else ()
        if unread or (self.broker is not None and (self.broker.jobs or self.broker.has_active())):
            left = 0
        for key, flags in self.poller.poll(max(0, min(timeout_ms, left))):
            found = self.by_key.get(key if isinstance(key, int) else key_of(key))
            if isinstance(found, int):
                self.awake.add(found)
                if flags & ~_OUT or found in self.needy:
                    self.read(found, flags)
            elif found is not None:
                found.accept(self)
        for slot in unread:
            self.read(slot, _IN)
        self.tell_time()
        self.deliver()
        self.arm()

    def unread(self):
        """Slots whose streams hold octets that poll knows nothing of."""
        return [slot for slot in self.needy if self.streams[slot].needs & _IN and len(self.endpoints[slot].writable())]

    def tell_time(self):
        """Tell the broker and, now and then, every endpoint what time it is."""
        now = clock.now_ms()
        if self.broker is not None:
            self.broker.tick(now, clock.seconds())
        if (now - self.ticked) & 0x3FFFFFFF >= TICK_MS:
            self.ticked = now
            self.awake.update(self.used)
            for slot in list(self.used):
                self.endpoints[slot].tick(now)

    def read(self, slot, flags):
        """Read what a stream has, while its endpoint takes it, until something can be delivered.

        A publisher that is read faster than its messages go out again costs a second time: they are no longer in the processor's cache.
        """
        endpoint = self.endpoints[slot]
        stream = self.streams[slot]
        began = clock.now_ms()
        for _ in range(_READS):
            view = endpoint.writable()
            size = len(view)
            if size == 0:
                if flags & ~(_IN | _OUT):  # hung up, while the endpoint does not read
                    endpoint.received(0)
                return
            count = stream.read_into(view)
            if count is None:
                return
            endpoint.received(count)
            if count < size or self.has_active() or (clock.now_ms() - began) & 0x3FFFFFFF >= _TURN_MS:
                return

    def has_active(self):
        """True when the broker may have something to deliver."""
        return self.broker is not None and self.broker.has_active()

    def deliver(self):
        """Let the broker deliver, and send, as long as sending makes room for more."""
        began = clock.now_ms()
        for _ in range(_ROUNDS):
            if self.broker is not None:
                self.broker.run()
            moved = False
            for slot in self.looked_at():
                if len(self.endpoints[slot].pending()):
                    moved = self.flush(slot) or moved
            if not moved or not self.has_active() or (clock.now_ms() - began) & 0x3FFFFFFF >= _DELIVER_MS:
                return

    def looked_at(self):
        """The slots at which something may have changed in this step."""
        if self.take_touched is None:
            return self.used
        self.awake.update(self.take_touched())
        return self.scanned + [slot for slot in self.awake if self.endpoints[slot] is not None and slot not in self.scanned]

    def flush(self, slot):
        """Send what an endpoint has; true when octets went out."""
        endpoint = self.endpoints[slot]
        stream = self.streams[slot]
        moved = False
        view = endpoint.pending()
        while len(view):
            count = stream.write(view)
            if count is None:
                return moved
            if count == 0:
                endpoint.received(0)
                return moved
            endpoint.sent(count)
            moved = True
            if count < len(view):
                return moved
            view = endpoint.pending()
        return moved

    def arm(self):
        """Ask poll for what each endpoint wants next; let go of those that are closed."""
        for slot in list(self.looked_at()):
            endpoint = self.endpoints[slot]
            if endpoint.closed:
                self.flush(slot)
                self.remove(slot)
                continue
            mask = (_IN if len(endpoint.writable()) else 0) | (_OUT if len(endpoint.pending()) else 0)
            if slot in self.needy:
                mask |= self.streams[slot].needs & _OUT
            if mask != self.masks[slot]:
                self.masks[slot] = mask
                self.poller.modify(self.streams[slot].pollable, mask)
        self.awake.clear()


def key_of(pollable):
    """What `poll` answers for a pollable: its descriptor where there is one, else itself."""
    return pollable.fileno() if hasattr(pollable, "fileno") else pollable


def would_block(error):
    """True for EAGAIN (11), EINPROGRESS (115, 36), EWOULDBLOCK (35) and the like."""
    return error.args[0] in (11, 35, 36, 115, 119) or isinstance(error, BLOCKING)


try:
    BLOCKING = BlockingIOError
except NameError:
    BLOCKING = ()


def resolve(host, port):
    """The first address of a host: (family, type, protocol, name, address). Raises OSError."""
    found = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
    if not found:
        raise OSError("no address for %s" % host)
    return found[0]


def name_of(address):
    """A peer's address as text."""
    return "%s:%d" % (address[0], address[1]) if isinstance(address, tuple) else "peer"


def host_of(address):
    """A peer's host as text, "" where the interpreter does not tell."""
    return address[0] if isinstance(address, tuple) else ""


def is_loopback(address):
    """True when a peer is this machine: 127.0.0.0/8 or ::1. MicroPython's unix port gives no readable address; there nobody is."""
    if not isinstance(address, tuple):
        return False
    return address[0].startswith("127.") or address[0] == "::1" or address[0].startswith("::ffff:127.")
