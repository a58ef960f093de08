"""The board's own loop: few streams, all of them looked at in each round, so that nothing is made in it and nothing is garbage.

Laws: as ports/tcp.py's. A round without anything to do takes no heap, nor does one that moves octets: an endpoint's buffer is sent from as
it stands, without a view, and behind the beginning of a frame octets are received into one view of the buffer that is made once. Where more
than 3/8 of a buffer wait each read still takes one, of 16 octets. Endpoints hear the time each TICK_MS, whether they want to or not: a
board has no thousand connections.
"""

import select

from ..core.shim import copy
from ..ports import clock
from ..ports.slots import IN, OUT, TICK_MS, Slots
from ..ports.sockets import key_of

READS = 4  # of one stream in one round, while it has as much as there is room for
DELIVERIES = 16  # how often one round lets the broker deliver into what was just sent
SECOND_MS = 1000
MASK = 0x3FFFFFFF


def waiting(poller):
    """The form of `poller.poll` that allocates nothing, where the interpreter has it (ipoll)."""
    return poller.ipoll if hasattr(poller, "ipoll") else poller.poll


class Rounds(Slots):
    """Up to `slot_count` streams of the broker; `round` moves their octets."""

    def __init__(self, slot_count, broker):
        Slots.__init__(self, slot_count, broker, select.poll())
        self.wait = waiting(self.poller)
        self.flags = [0] * slot_count  # what poll says of each slot in this round
        self.buffers = [None] * slot_count  # the receive buffer whose part behind 3/8 of it is the view in `tails`
        self.tails = [None] * slot_count
        self.knocked = []  # listeners at which somebody is, in this round
        self.seconds_at = self.ticked
        self.seconds = clock.since_2020()
        broker.pass_time(self.ticked, self.seconds)

    def round(self, timeout_ms):
        """One step, of up to `timeout_ms` without anything to do. Raises what `step` then counts as a fault of the broker's own."""
        self.hear(self.wait_ms(timeout_ms))
        now = clock.now_ms()
        self.tell_broker(now)  # what is read now has come now, however long nothing has happened
        for slot in range(len(self.flags)):
            flags = self.flags[slot]
            if flags & ~OUT:
                self.read(slot, flags)
            self.flags[slot] = 0
        while self.knocked:
            self.accept_from(self.knocked.pop())
        if (now - self.ticked) & MASK >= TICK_MS:
            self.ticked = now
            self.tell_endpoints(now)
        self.deliver()
        self.arm()

    def wait_ms(self, timeout_ms):
        """Milliseconds that this round may wait."""
        broker = self.broker
        if broker.jobs or broker.has_active():
            return 0
        now = clock.now_ms()
        return max(0, min(timeout_ms, TICK_MS - ((now - self.ticked) & MASK), broker.due_in(now)))

    def hear(self, wait_ms):
        """Wait, and note the events of poll. Streams are registered and removed only after poll has returned all of them."""
        for key, flags in self.wait(wait_ms):
            owner = self.by_key.get(key if isinstance(key, int) else key_of(key))
            if isinstance(owner, int):
                self.flags[owner] = flags
            elif owner is not None:
                self.knocked.append(owner)

    def tell_broker(self, now):
        """Tell the broker what time it is. The seconds are asked for once in a second: on some boards they are heap."""
        if (now - self.seconds_at) & MASK >= SECOND_MS:
            self.seconds_at = now
            self.seconds = clock.since_2020()
        self.broker.pass_time(now, self.seconds)

    def tell_endpoints(self, now):
        """Tell the endpoints what time it is."""
        for slot in range(len(self.endpoints)):
            endpoint = self.endpoints[slot]
            if endpoint is not None:
                try:
                    endpoint.tick(now)
                except Exception as error:  # an error of ours ends this connection alone
                    self.broke(slot, error)

    def read(self, slot, flags):
        """Read what a stream has while its endpoint takes it, until something can be delivered."""
        try:
            for _ in range(READS):
                if not self.read_once(slot, flags) or self.broker.has_active():
                    return
        except Exception as error:  # an error of ours ends this connection alone
            self.broke(slot, error)

    def read_once(self, slot, flags):
        """One read; true when there may be more."""
        endpoint = self.endpoints[slot]
        if endpoint is None:
            return False  # it was let go in this round
        view = self.room_of(slot, endpoint)
        size = len(view)
        if size == 0:
            if flags & ~(IN | OUT):  # hung up, while the endpoint does not read
                endpoint.received(0)
            return False
        count = self.streams[slot].read_into(view)
        if count is not None:
            endpoint.received(count)
        return count == size

    def room_of(self, slot, endpoint):
        """The view to read into: `writable`, or what waits of a frame is moved to where the slot's view begins."""
        buffer = endpoint.in_buffer() if hasattr(endpoint, "in_buffer") else None
        if buffer is None or buffer.start == buffer.end:
            return endpoint.writable()
        end = (buffer.size >> 3) * 3
        start = end - (buffer.end - buffer.start)
        if start < 0 or buffer.start < start < buffer.end:
            return endpoint.writable()  # there are too many, or they would be written over while they are moved
        if self.buffers[slot] is not buffer:
            self.tails[slot] = buffer.octets[end:]
            self.buffers[slot] = buffer
        copy(buffer.octets, start, buffer.octets, buffer.start, end - start)
        buffer.start, buffer.end = start, end
        return self.tails[slot]

    def deliver(self):
        """Let the broker deliver and send its octets, again while sending frees send buffers for more deliveries."""
        for _ in range(DELIVERIES):
            self.broker.run()
            if not self.flush_all() or not self.broker.has_active():
                return

    def flush_all(self):
        """Send what all endpoints have; true when octets went out."""
        moved = False
        for slot in range(len(self.endpoints)):
            if self.endpoints[slot] is not None:
                try:
                    moved = self.flush(slot) or moved
                except Exception as error:  # an error of ours ends this connection alone
                    self.broke(slot, error)
        return moved

    def flush(self, slot):
        """As Slots.flush, without a view where an endpoint has its octets in one buffer."""
        endpoint, stream = self.endpoints[slot], self.streams[slot]
        if not hasattr(endpoint, "out_buffer"):  # a bridge's client
            return Slots.flush(self, slot)
        moved = False
        while True:
            out = endpoint.out_buffer()
            size = 0 if out is None else out.end - out.start
            if size == 0:
                return moved
            count = stream.write_part(out.octets, out.start, size)
            if count is None:
                return moved
            if count == 0:
                endpoint.received(0)
                return moved
            endpoint.sent(count)
            moved = True
            if count < size:
                return moved

    def arm(self):
        """Ask poll for what each endpoint wants next; let go of those that are closed."""
        for slot in range(len(self.endpoints)):
            if self.endpoints[slot] is not None:
                try:
                    self.arm_slot(slot)
                except Exception as error:  # an error of ours ends this connection alone
                    self.broke(slot, error)

    def arm_slot(self, slot):
        """Ask poll for the needs of one slot's endpoint, or remove the slot when its endpoint has closed."""
        endpoint = self.endpoints[slot]
        if endpoint.closed:
            try:
                self.flush(slot)
            finally:
                self.remove(slot)
            return
        if hasattr(endpoint, "out_buffer"):
            out = endpoint.out_buffer()
            mask = (IN if endpoint.is_read() else 0) | (OUT if out is not None and out.end > out.start else 0)
        else:
            mask = (IN if len(endpoint.writable()) else 0) | (OUT if len(endpoint.pending()) else 0)
        if mask != self.masks[slot]:
            self.masks[slot] = mask
            self.poller.modify(self.streams[slot].pollable, mask)
