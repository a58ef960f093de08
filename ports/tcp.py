"""TCP, and the one loop that drives every endpoint (core/DESIGN.md sections 1 and 2): non-blocking streams in fixed slots.

Runs unchanged on CPython and MicroPython: with epoll where there is one, else with poll. It moves octets and keeps time; what they mean is
the endpoints' affair. A stream that breaks is its endpoint's `received(0)`; nothing a peer does raises out of `step`, and what raises all
the same (an error of ours, a heap that is used up) costs the connection that it was for. What a step costs depends on the streams at which
something happens, not on those that are idle.
"""

import select

from . import clock
from .alarms import Alarms
from .slots import IN, OUT, TICK_MS, Slots
from .sockets import key_of

if False:  # for the type checker alone
    from typing import Any, Iterable

_EPOLL = hasattr(select, "epoll")  # with the same flags as poll, and seconds for milliseconds
_READY = 64  # streams that one step reads, of those at which something happened: the others are the first in the next one
_ROUNDS = 32  # how often one step lets the broker deliver into what was just sent
_READS = 8  # reads of one stream in one step, so that a fast peer does not keep the others waiting
_SHARE = 65536  # octets that one read of a stream that has much takes at most while others have a little
_TURN_MS = 2  # and reading does not go on when it has taken that long
_DELIVER_MS = 8  # nor delivering


class Loop(Slots):
    """Up to `slot_count` streams with their endpoints, any listeners, and the broker (or None) that is told the time and delivers."""

    def __init__(self, slot_count: int, broker: "Any" = None) -> None:
        Slots.__init__(self, slot_count, broker, select.epoll() if _EPOLL else select.poll())
        # Of the slots in use those that are looked at in every step; the others say by their send buffers when they want to be.
        self.scanned: "set[int]" = set()
        self.awake: "set[int]" = set()  # of the others, those to be looked at in this step
        self.alarms = Alarms(slot_count)
        self.uptime_ms = 0  # up to `ticked`
        self.collect_touched = broker.tables.engine.collect_touched if broker is not None else None
        engine: "Any" = None if broker is None else broker.tables.engine
        self.ready: "Any" = engine.ready(broker) if hasattr(engine, "ready") else None  # takes small turns together (DESIGN.md section 1)
        self.bulky: "set[int]" = set()  # slots whose streams had as much as was taken when they were read last
        self.gathering: "dict[int, Any]" = {}  # slot -> its send buffer, which may be scattered (DESIGN.md section 1)
        self.needy: "set[int]" = set()  # slots whose streams have `needs` of their own (DESIGN.md section 2)
        self.unread: "set[int]" = set()  # those of them that hold octets which poll knows nothing of
        self.told_ms: int | None = None
        self.tell_broker(self.ticked)

    # Streams

    def add(self, stream: "Any", endpoint: "Any") -> None:
        """Drive `endpoint` over `stream` until it is closed. Raises OSError when all slots are taken."""
        slot = self.slot_for(stream, endpoint)
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

    def watch(self, source: "Any") -> None:
        """Call `source.accept(loop)` whenever its `pollable` can be read."""
        self.by_key[key_of(source.pollable)] = source
        self.poller.register(source.pollable, IN)

    def remove(self, slot: int) -> None:
        """Close a slot's stream and free the slot."""
        Slots.remove(self, slot)
        for slots in (self.scanned, self.bulky, self.needy, self.unread):
            slots.discard(slot)
        self.gathering.pop(slot, None)
        self.alarms.forget(slot)

    def close(self) -> None:
        """Close everything."""
        Slots.close(self)
        if _EPOLL:
            self.poller.close()

    # Time and octets

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
        happened: "list[int]" = []
        later: "list[tuple[int, int]]" = []
        heard = 0
        ready = self.poller.poll(wait_ms / 1000, _READY) if _EPOLL else self.poller.poll(wait_ms)
        now = clock.now_ms()
        self.tell_broker(now)  # what is read now has come now, however long nothing has happened
        if self.ready is not None:
            ready, heard = self.read_ready(ready, happened, later)
        for key, flags in ready:
            owner = self.by_key.get(key if isinstance(key, int) else key_of(key))
            if isinstance(owner, int):
                happened.append(owner)
                if owner in self.bulky and flags & ~OUT:
                    later.append((owner, flags))
                elif flags & ~OUT or owner in self.needy:
                    self.read(owner, flags)
                    heard += 1
            elif owner is not None:
                self.accept_from(owner)
        for slot in unread:
            self.read(slot, IN)
        if later:
            self.read_bulky(later, heard)
        if unread:
            self.wake(unread)
        self.wake(happened)
        self.tell_endpoints(now)
        self.deliver()
        self.arm()

    def read_ready(self, ready: "list[Any]", happened: "list[int]", later: "list[tuple[int, int]]") -> "tuple[list[Any], int]":
        """Read what is for `ready` (c_accel/ready.py), before anything else changes: what poll said of the others, and how many had a
        little. `happened` gets the slots that there is more to do for, `later` those with more to read."""
        others = []
        for key, flags in ready:
            slot = self.by_key.get(key)
            if flags != IN or slot not in self.gathering or slot in self.bulky:
                others.append((key, flags))
            elif not self.ready.add(slot, self.endpoints[slot], self.streams[slot].descriptor):
                others.append((key, flags))
        left, full = self.ready.read()
        self.bulky.update(full)
        later += [(slot, IN) for slot in full]
        happened += left
        return others, len(ready) - len(others) - len(full)

    def waits_to_read(self, slot: int) -> bool:
        """True when poll is asked for nothing of a slot but octets to read."""
        return self.masks[slot] == IN

    def wake(self, slots: "Iterable[int]") -> None:
        """Read and write these slots in this step, and tell their endpoints the time soon."""
        self.awake.update(slots)
        self.alarms.soon.update(slots)

    def tell_broker(self, now: int) -> None:
        """Tell the broker what time it is."""
        if self.broker is not None and now != self.told_ms:
            self.told_ms = now
            self.broker.tick(now, clock.seconds())

    def tell_endpoints(self, now: int) -> None:
        """Tell endpoints whose turn it is the time, after the step has read: so that none gives up a peer that has just sent."""
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
                    if flags & ~(IN | OUT):  # hung up, while the endpoint does not read
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

    def deliver(self) -> None:
        """Let the broker deliver and send its octets, again while sending frees send buffers for more deliveries."""
        began = None
        for _ in range(_ROUNDS):
            if self.broker is not None:
                self.broker.run()
            slots = self.looked_at()
            moved = self.ready is not None and self.ready.has_sent()
            for slot in slots:
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
        if touched and self.ready is not None:
            touched = self.ready.send(self, touched)
        if touched:
            self.wake(touched)
        if self.scanned:
            self.awake.update(self.scanned)
        return [slot for slot in self.awake if self.endpoints[slot] is not None]

    def flush(self, slot: int) -> bool:
        """As Slots.flush; what is scattered goes out in one call."""
        buffer = self.gathering.get(slot)
        if buffer is None:
            return Slots.flush(self, slot)
        endpoint, stream = self.endpoints[slot], self.streams[slot]
        moved = False
        while buffer.waits():
            view = endpoint.pending()
            count = buffer.send_to(stream.descriptor) if buffer.is_scattered() else stream.write(view)
            if count is None:
                return moved
            if count == 0:
                endpoint.received(0)
                return moved
            endpoint.sent(count)
            moved = True
            if count < len(view):
                return moved
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
        """Ask poll for what one slot's endpoint needs, or remove the slot when its endpoint has closed."""
        endpoint = self.endpoints[slot]
        if endpoint.closed:
            try:
                self.flush(slot)
            finally:
                self.remove(slot)
            return
        buffer = self.gathering.get(slot)
        if buffer is None:
            mask = (IN if len(endpoint.writable()) else 0) | (OUT if len(endpoint.pending()) else 0)
        else:
            mask = (IN if endpoint.is_read() else 0) | (OUT if buffer.waits() else 0)
        if slot in self.needy:
            mask |= self.streams[slot].needs & OUT
            if mask & self.streams[slot].needs & IN:
                self.unread.add(slot)
            else:
                self.unread.discard(slot)
        if mask != self.masks[slot]:
            self.masks[slot] = mask
            self.poller.modify(self.streams[slot].pollable, mask)

    def broke(self, slot: int, error: Exception) -> None:
        """As Slots.broke; what it has said is sent."""
        self.awake.add(slot)
        Slots.broke(self, slot, error)
