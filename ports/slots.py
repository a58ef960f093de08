"""Streams in fixed slots, each with its endpoint, and listeners: what the loops of ports/tcp.py and firmware/rounds.py share.

It waits for nothing and moves no octets by itself. What raises in work for a slot and is no peer's fault (an error of ours, a heap that is
used up) costs the connection that the work was for.
"""

import select

from . import clock
from .sockets import Listener, SocketStream, key_of, resolve, socket, would_block

if False:  # for the type checker alone
    from typing import Any, Callable

IN = select.POLLIN  # epoll has the same flags
OUT = select.POLLOUT
_FAILURES_MAX = 1000  # rounds in a row that raised, as poll does when the system takes its descriptor away
TICK_MS = 100


class Slots:
    """Up to `slot_count` streams, any listeners, and the broker (or None: a client's). `poller`: of the module select."""

    def __init__(self, slot_count: int, broker: "Any", poller: "Any") -> None:
        self.broker = broker
        self.poller = poller
        self.streams: "list[Any]" = [None] * slot_count
        self.endpoints: "list[Any]" = [None] * slot_count
        self.masks = [0] * slot_count
        self.used: "set[int]" = set()  # slot numbers
        # What poll answers -> slot number, or what `accept` is called of: a Listener, a store that has done something.
        self.by_key: "dict[Any, Any]" = {}
        self.listeners: "list[Listener]" = []
        self.failed = 0  # rounds in a row
        self.broken: "set[int]" = set()  # slots at which something raised that was no peer's fault: the second time they are closed
        self.ticked = clock.now_ms()

    def has_slot(self) -> bool:
        """True when one more stream can be added."""
        return len(self.used) < len(self.streams)

    def add(self, stream: "Any", endpoint: "Any") -> None:
        """Drive `endpoint` over `stream` until it is closed. Raises OSError when all slots are taken."""
        self.slot_for(stream, endpoint)

    def slot_for(self, stream: "Any", endpoint: "Any") -> int:
        """The slot that `stream` and `endpoint` have from now on. Raises OSError when all are taken."""
        if not self.has_slot():
            raise OSError("all %d stream slots are taken" % len(self.streams))
        slot = self.streams.index(None)
        self.streams[slot] = stream
        self.endpoints[slot] = endpoint
        self.masks[slot] = IN | OUT
        self.used.add(slot)
        self.by_key[key_of(stream.pollable)] = slot
        self.poller.register(stream.pollable, IN | OUT)
        return slot

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
        self.poller.register(listening, IN)
        return host, listening.getsockname()[1] if hasattr(listening, "getsockname") else port

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
        """Close a slot's stream and free the slot: also one that Ctrl-C has left half removed."""
        stream = self.streams[slot]
        if stream is not None:
            if self.by_key.pop(key_of(stream.pollable), None) is not None:
                self.poller.unregister(stream.pollable)
            stream.close()
        self.streams[slot] = self.endpoints[slot] = None
        self.used.discard(slot)
        self.broken.discard(slot)

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
        """One step, of a loop. Raises what `step` then counts as a fault of the broker's own."""

    def accept_from(self, listener: "Any") -> None:
        """Have a listener accept what waits there."""
        try:
            listener.accept(self)
        except Exception as error:  # an error of ours: told, and the others are served
            self.trouble("a listener", error)

    def has_active(self) -> bool:
        """True when a queue may have a message to deliver."""
        return self.broker is not None and self.broker.has_active()

    def flush(self, slot: int) -> bool:
        """Send what an endpoint has; true when octets went out."""
        endpoint, stream = self.endpoints[slot], self.streams[slot]
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
