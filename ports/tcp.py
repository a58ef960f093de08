"""TCP, and the one loop that drives every endpoint (core/DESIGN.md sections 1 and 2): non-blocking streams in fixed slots.

Runs unchanged on CPython and MicroPython: with epoll where there is one, else with poll. It moves octets and keeps time; what they mean is
the endpoints' affair. A stream that breaks is its endpoint's `received(0)`; nothing a peer does raises out of `step`, and what raises all
the same (an error of ours, a heap that is used up) costs the connection that it was for. What a step costs depends on the streams at which
something happens, not on those that are idle.
"""

import select

if False:  # for the type checker alone
    from typing import Any, Callable, Iterable

    Transfer = Callable[[memoryview | bytearray], int | None]

try:
    import socket
except ImportError:
    socket = None  # type: ignore[assignment]  # a board with serial lines only: the loop drives those

from . import clock
from .alarms import Alarms

_EPOLL = hasattr(select, "epoll")  # with the same flags as poll, and seconds for milliseconds
_IN = select.POLLIN
_OUT = select.POLLOUT
_FAILURES_MAX = 1000  # rounds in a row that raised, as poll does when the system takes its descriptor away
_ROUNDS = 32  # how often one step lets the broker deliver into what was just sent
_READS = 8  # reads of one stream in one step, so that a fast peer does not keep the others waiting
_SHARE = 65536  # octets that one read of a stream that has much takes at most while others have a little
_TURN_MS = 2  # and reading does not go on when it has taken that long
_DELIVER_MS = 8  # nor delivering
TICK_MS = 100


class SocketStream:
    """A connected (or connecting) socket as a stream. `from_loopback`: the peer is this machine; `address`: its host, "" when not known."""

    def __init__(self, connected: "Any", name: str, from_loopback: bool = False, address: str = "") -> None:
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
            self.descriptor = connected.fileno()  # octets may be sent past `write`
            self._read: "Transfer" = connected.recv_into
            self._write: "Transfer" = connected.send
        else:
            self._read = connected.readinto
            self._write = connected.write

    def read_into(self, view: "memoryview | bytearray") -> int | None:
        """Octets read; 0: the peer is gone; None: nothing now."""
        try:
            return self._read(view)
        except OSError as error:
            return None if would_block(error) else 0

    def write(self, view: "memoryview | bytearray") -> int | None:
        """Octets written; None: none now; 0: the peer is gone."""
        try:
            return self._write(view)
        except OSError as error:
            return None if would_block(error) else 0

    def close(self) -> None:
        """Close the socket."""
        self.pollable.close()


class Listener:
    """A listening socket; `make_endpoint(stream)` gives the endpoint of an accepted connection, or None to refuse it.

    `make_stream(socket, name, from_loopback, address)` makes its stream, or raises OSError when the peer has gone.
    """

    def __init__(
        self, listening: "Any", make_endpoint: "Callable[[Any], Any]", make_stream: "Callable[[Any, str, bool, str], Any]"
    ) -> None:
        listening.setblocking(False)
        self.pollable = listening
        self.make_endpoint = make_endpoint
        self.make_stream = make_stream

    def accept(self, loop: "Loop") -> None:
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
            except Exception as error:  # an error of ours: told, and the others are served
                loop.trouble("a new connection", error)
                connected.close()
                continue
            endpoint = None
            try:
                endpoint = self.make_endpoint(stream)
                if endpoint is None or endpoint.closed:
                    stream.close()
                elif loop.has_slot() or loop.let_go():
                    loop.add(stream, endpoint)
                else:
                    endpoint.received(0)
                    stream.close()
            except Exception as error:  # an error of ours: told, and the others are served
                loop.trouble("a new connection", error)
                if endpoint is not None:
                    endpoint.received(0)
                stream.close()


class Loop:
    """Up to `slot_count` streams with their endpoints, any listeners, and the broker (or None) that is told the time and delivers."""

    def __init__(self, slot_count: int, broker: "Any" = None) -> None:
        self.broker = broker
        self.poller: "Any" = select.epoll() if _EPOLL else select.poll()
        self.streams: "list[Any]" = [None] * slot_count
        self.endpoints: "list[Any]" = [None] * slot_count
        self.masks = [0] * slot_count
        self.used: "set[int]" = set()  # slot numbers
        self.scanned: "set[int]" = (
            set()
        )  # those of them that are looked at in every step; the others say by their send buffers when they want to be
        self.awake: "set[int]" = set()  # of the others, those to be looked at in this step
        self.alarms = Alarms(slot_count)
        self.uptime_ms = 0  # up to `ticked`
        self.collect_touched = broker.tables.engine.collect_touched if broker is not None else None
        # What poll answers -> slot number, or what `accept` is called of: a Listener, a store that has done something.
        self.by_key: "dict[Any, Any]" = {}
        self.listeners: "list[Listener]" = []
        self.bulky: "set[int]" = set()  # slots whose streams had as much as was taken when they were read last
        self.gathering: "dict[int, Any]" = {}  # slot -> its send buffer, which may be scattered (DESIGN.md section 1)
        self.needy: "set[int]" = set()  # slots whose streams have `needs` of their own (DESIGN.md section 2)
        self.failed = 0  # rounds in a row
        self.broken: "set[int]" = set()  # slots at which something raised that was no peer's fault: the second time they are closed
        self.unread: "set[int]" = set()  # those of them that hold octets which poll knows nothing of
        self.ticked = clock.now_ms()
        self.told: int | None = None
        self.tell_broker(self.ticked)

    # Streams

    def has_slot(self) -> bool:
        """True when one more stream can be added."""
        return len(self.used) < len(self.streams)

    def add(self, stream: "Any", endpoint: "Any") -> None:
        """Drive `endpoint` over `stream` until it is closed. Raises OSError when all slots are taken."""
        if not self.has_slot():
            raise OSError("all %d stream slots are taken" % len(self.streams))
        slot = self.streams.index(None)
        self.streams[slot] = stream
        self.endpoints[slot] = endpoint
        self.masks[slot] = _IN | _OUT
        self.used.add(slot)
        buffer = getattr(endpoint, "send", None)
        if self.collect_touched is not None and buffer is not None and hasattr(buffer, "slot"):
            if buffer.slot is not None:
                self.awake.add(buffer.slot)  # it may have told us of the connection that had it before, which is over
            buffer.slot = slot
            if hasattr(buffer, "gather") and hasattr(stream, "descriptor"):
                buffer.gather()
                self.gathering[slot] = buffer
        else:
            self.scanned.add(slot)
        self.wake((slot,))
        if hasattr(stream, "needs"):
            self.needy.add(slot)
        self.by_key[key_of(stream.pollable)] = slot
        self.poller.register(stream.pollable, _IN | _OUT)

    def listen(
        self,
        host: str,
        port: int,
        make_endpoint: "Callable[[Any], Any]",
        make_stream: "Callable[[Any, str, bool, str], Any]" = SocketStream,
    ) -> tuple[str, int]:
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

    def watch(self, source: "Any") -> None:
        """Call `source.accept(loop)` whenever its `pollable` can be read."""
        self.by_key[key_of(source.pollable)] = source
        self.poller.register(source.pollable, _IN)

    def connect(self, host: str, port: int, endpoint: "Any") -> None:
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

    def remove(self, slot: int) -> None:
        """Close a slot's stream and free the slot."""
        stream = self.streams[slot]
        self.poller.unregister(stream.pollable)
        del self.by_key[key_of(stream.pollable)]
        stream.close()
        self.streams[slot] = self.endpoints[slot] = None
        for slots in (self.used, self.scanned, self.bulky, self.needy, self.unread, self.broken):
            slots.discard(slot)
        self.gathering.pop(slot, None)
        self.alarms.forget(slot)

    def let_go(self) -> bool:
        """Remove streams whose endpoints have closed in this step already; true when there is a slot then."""
        for slot in list(self.used):
            if self.endpoints[slot].closed:
                self.flush(slot)
                self.remove(slot)
        return self.has_slot()

    def stop_listening(self) -> None:
        """Close all listeners."""
        for listener in self.listeners:
            self.poller.unregister(listener.pollable)
            del self.by_key[key_of(listener.pollable)]
            listener.pollable.close()
        self.listeners = []

    def close(self) -> None:
        """Close everything."""
        self.stop_listening()
        for slot in list(self.used):
            self.remove(slot)
        if _EPOLL:
            self.poller.close()

    # Time and octets

    def step(self, timeout_ms: int) -> None:
        """Wait up to `timeout_ms` for something to do and do it. With a broker it does not raise, unless nothing works any more."""
        if self.broker is None:
            self.round(timeout_ms)
            return
        try:
            self.round(timeout_ms)
            self.failed = 0
        except Exception as error:  # an error of ours: told, and the next round comes
            self.trouble("a round of the loop", error)
            self.failed += 1
            if self.failed == _FAILURES_MAX:
                raise

    def round(self, timeout_ms: int) -> None:
        """One step. Raises what `step` then counts as a fault of the broker's own."""
        now = clock.now_ms()
        left = TICK_MS - ((now - self.ticked) & 0x3FFFFFFF)
        unread = list(self.unread)
        if unread or (self.broker is not None and (self.broker.jobs or self.broker.has_active())):
            left = 0
        elif self.broker is not None:
            left = min(left, self.broker.due_in(now))
        wait_ms = max(0, min(timeout_ms, left))
        happened = []
        later = []
        heard = 0
        ready = self.poller.poll(wait_ms / 1000 if _EPOLL else wait_ms)
        now = clock.now_ms()
        self.tell_broker(now)  # what is read now has come now, however long nothing has happened
        for key, flags in ready:
            owner = self.by_key.get(key if isinstance(key, int) else key_of(key))
            if isinstance(owner, int):
                happened.append(owner)
                if owner in self.bulky and flags & ~_OUT:
                    later.append((owner, flags))
                elif flags & ~_OUT or owner in self.needy:
                    self.read(owner, flags)
                    heard += 1
            elif owner is not None:
                try:
                    owner.accept(self)
                except Exception as error:  # an error of ours: told, and the others are served
                    self.trouble("a listener", error)
        for slot in unread:
            self.read(slot, _IN)
        if later:
            self.read_bulky(later, heard)
        if unread:
            self.wake(unread)
        self.wake(happened)
        self.tell_endpoints(now)
        self.deliver()
        self.arm()

    def wake(self, slots: "Iterable[int]") -> None:
        """Read and write these slots in this step, and tell their endpoints the time soon."""
        self.awake.update(slots)
        self.alarms.soon.update(slots)

    def tell_broker(self, now: int) -> None:
        """Tell the broker what time it is."""
        if self.broker is not None and now != self.told:
            self.told = now
            self.broker.tick(now, clock.seconds())

    def tell_endpoints(self, now: int) -> None:
        """Tell the endpoints that are to know it, now and then: behind what was read, so that a peer that has spoken is not given up."""
        passed_ms = (now - self.ticked) & 0x3FFFFFFF
        if passed_ms < TICK_MS:
            return
        self.ticked = now
        self.uptime_ms += passed_ms
        slots = self.alarms.due(self.uptime_ms)
        self.awake.update(slots)
        for slot in slots:
            endpoint = self.endpoints[slot]
            if endpoint is None:
                continue
            try:
                wait_ms = endpoint.tick(now)
            except Exception as error:  # an error of ours ends this connection alone
                self.broke(slot, error)
                continue
            if wait_ms is None:
                self.alarms.soon.add(slot)
            else:
                self.alarms.set(slot, self.uptime_ms + wait_ms)

    def read_bulky(self, streams: "list[tuple[int, int]]", heard: int) -> None:
        """Read streams that have much, (slot, flags) each, behind those that had a little: how many of these there were.

        An acknowledgement lets messages out. Its consumer gets them at once and works on them while the publishers are read.
        """
        if heard and self.has_active():
            self.deliver()
        for slot, flags in streams:
            self.read(slot, flags, _SHARE if heard else None)

    def read(self, slot: int, flags: int, most: int | None = None) -> None:
        """Read what a stream has, `most` octets at a time, while its endpoint takes it, until something can be delivered.

        A publisher that is read faster than its messages go out again costs a second time: they are no longer in the processor's cache.
        """
        try:
            self.read_on(slot, flags, most)
        except Exception as error:  # an error of ours ends this connection alone
            self.broke(slot, error)

    def read_on(self, slot: int, flags: int, most: int | None) -> None:
        """Read a slot's stream. Raises for faults of the broker's own; a peer's are the endpoint's affair."""
        endpoint = self.endpoints[slot]
        stream = self.streams[slot]
        if endpoint is None:
            return  # it was let go in this step
        began = None
        for _ in range(_READS):
            count = endpoint.take_in(stream.descriptor, most) if slot in self.gathering else -1
            if count is not None and count >= 0:
                size = endpoint.most_taken
                if count == 0:
                    endpoint.received(0)
            elif count is not None:
                view = endpoint.writable()
                size = len(view)
                if most is not None and size > most:
                    view, size = view[:most], most
                if size == 0:
                    if flags & ~(_IN | _OUT):  # hung up, while the endpoint does not read
                        endpoint.received(0)
                    return
                count = stream.read_into(view)
                if count is not None:
                    endpoint.received(count)
            if count is None:
                return
            if count < size:
                self.bulky.discard(slot)
                return
            self.bulky.add(slot)
            if began is None:
                began = clock.now_ms()
            if self.has_active() or (clock.now_ms() - began) & 0x3FFFFFFF >= _TURN_MS:
                return

    def has_active(self) -> bool:
        """True when a queue may have a message to deliver."""
        return self.broker is not None and self.broker.has_active()

    def deliver(self) -> None:
        """Let the broker deliver and send its octets, again while sending frees send buffers for more deliveries."""
        began = None
        for _ in range(_ROUNDS):
            if self.broker is not None:
                self.broker.run()
            moved = False
            for slot in self.looked_at():
                try:
                    moved = self.flush(slot) or moved
                except Exception as error:  # an error of ours ends this connection alone
                    self.broke(slot, error)
            if not moved or not self.has_active():
                return
            now = clock.now_ms()
            if began is None:
                began = now
            elif (now - began) & 0x3FFFFFFF >= _DELIVER_MS:
                return

    def looked_at(self) -> list[int]:
        """The slots whose streams or endpoints changed in this step."""
        touched = self.collect_touched() if self.collect_touched is not None else None
        if touched:
            self.wake(touched)
        if self.scanned:
            self.awake.update(self.scanned)
        return [slot for slot in self.awake if self.endpoints[slot] is not None]

    def flush(self, slot: int) -> bool:
        """Send what an endpoint has; true when octets went out."""
        endpoint = self.endpoints[slot]
        stream = self.streams[slot]
        buffer = self.gathering.get(slot)
        moved = False
        if buffer is not None and not buffer.waits():
            return False
        view = endpoint.pending()
        while len(view):
            count = stream.write(view) if buffer is None or not buffer.is_scattered() else buffer.send_to(stream.descriptor)
            if count is None:
                return moved
            if count == 0:
                endpoint.received(0)
                return moved
            endpoint.sent(count)
            moved = True
            if count < len(view) or buffer is not None and not buffer.waits():
                return moved
            view = endpoint.pending()
        return moved

    def arm(self) -> None:
        """Ask poll for what each endpoint wants next; let go of those that are closed."""
        broken = []
        for slot in self.looked_at():
            try:
                self.arm_slot(slot)
            except Exception as error:  # an error of ours ends this connection alone
                self.broke(slot, error)
                broken.append(slot)
        self.awake.clear()
        if broken:
            self.wake(broken)

    def arm_slot(self, slot: int) -> None:
        """Ask poll for the needs of one slot's endpoint, or remove the slot when its endpoint has closed."""
        endpoint = self.endpoints[slot]
        if endpoint.closed:
            try:
                self.flush(slot)
            finally:
                self.remove(slot)
            return
        buffer = self.gathering.get(slot)
        waits = len(endpoint.pending()) if buffer is None else buffer.waits()
        mask = (_IN if len(endpoint.writable()) else 0) | (_OUT if waits else 0)
        if slot in self.needy:
            mask |= self.streams[slot].needs & _OUT
            if mask & self.streams[slot].needs & _IN:
                self.unread.add(slot)
            else:
                self.unread.discard(slot)
        if mask != self.masks[slot]:
            self.masks[slot] = mask
            self.poller.modify(self.streams[slot].pollable, mask)

    def trouble(self, whose: str, error: Exception) -> None:
        """Count a fault of the broker's own, and tell the operator."""
        if self.broker is not None:
            self.broker.guard.trouble(whose + "%s", "", error)

    def broke(self, slot: int, error: Exception) -> None:
        """Work for a slot raised `error`: its endpoint tells the peer and ends (`broke`); if that raises too, the loop closes
        the stream."""
        if self.broker is None:
            raise error  # a client's loop: it is its caller's
        endpoint = self.endpoints[slot]
        if endpoint is None:
            self.trouble("a connection that had ended", error)
            return
        self.awake.add(slot)
        try:
            if hasattr(endpoint, "broke") and slot not in self.broken:
                self.broken.add(slot)
                endpoint.broke(error)
                return
            self.trouble("a stream", error)
            endpoint.received(0)
        except Exception as again:  # what it raises again: the slot is freed all the same
            self.trouble("a stream", again)
        self.remove(slot)


def key_of(pollable: "Any") -> "Any":
    """The object that `poll` returns for a pollable: its descriptor where there is one, else itself."""
    return pollable.fileno() if hasattr(pollable, "fileno") else pollable


def would_block(error: OSError) -> bool:
    """True for EAGAIN (11), EINPROGRESS (115, 36), EWOULDBLOCK (35) and the like."""
    return error.args[0] in (11, 35, 36, 115, 119) or isinstance(error, BLOCKING)


try:
    BLOCKING: "tuple[type[OSError], ...]" = (BlockingIOError,)
except NameError:
    BLOCKING = ()


def resolve(host: str, port: int) -> "tuple[Any, ...]":
    """The first address of a host: (family, type, protocol, name, address). Raises OSError."""
    addresses = socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM)
    if not addresses:
        raise OSError("no address for %s" % host)
    return addresses[0]


def name_of(address: object) -> str:
    """A peer's address as text."""
    return "%s:%d" % (address[0], address[1]) if isinstance(address, tuple) else "peer"


def host_of(address: object) -> str:
    """A peer's host as text, "" where the interpreter does not tell."""
    return address[0] if isinstance(address, tuple) else ""


def is_loopback(address: object) -> bool:
    """True when a peer is this machine: 127.0.0.0/8 or ::1. MicroPython's unix port gives no readable address; there nobody is."""
    if not isinstance(address, tuple):
        return False
    host: str = address[0]
    return host.startswith("127.") or host == "::1" or host.startswith("::ffff:127.")
