"""AMQP 1.0's row of the hot path in C: what core/amqp_1_0/hot_row.py asks the engine in C for."""

from leveret.core import limits

from ._hot import ffi, lib

HEAD_MAX = 2048  # octets


class Row:
    """As core/amqp_1_0/hot_row.py has it."""

    name = "amqp_1_0"
    reads_flows = True
    notes_routes = True
    wire = lib.leveret_amqp_1_0_wire()

    def __init__(self, engine):
        self.engine = engine
        self.pointers = engine.pointers
        self.reading = ffi.new("leveret_amqp_1_0_reading *")
        self.answer = ffi.new("int32_t *")  # of the last `take_in`: why it stopped
        self.kept = {}  # what the engine's readers point to, by consumer: at least as long as they do

    def link(self):
        """A leveret_amqp_1_0_link of c_accel/amqp_1_0.h: its fields by name."""
        return ffi.new("leveret_amqp_1_0_link *")

    def windows(self):
        """A leveret_amqp_1_0_windows: its fields by name."""
        return ffi.new("leveret_amqp_1_0_windows *")

    def sender(self):
        """A leveret_amqp_1_0_sender."""
        return ffi.new("leveret_amqp_1_0_sender *")

    def deliver_to(self, consumer, sender, windows, prefix, settled):
        """Have C deliver to a consumer by itself; `sender` None: no more. `prefix`: the octets of a transfer up to its delivery-id."""
        consumer.prefix_at = None
        if sender is not None:
            ffi.memmove(sender.prefix, prefix, len(prefix))
            sender.prefix_size, sender.settled, sender.windows = len(prefix), settled, windows
            consumer.row, consumer.prefix, consumer.prefix_at = self, prefix, ffi.cast("uint8_t *", sender)
            self.kept[consumer.handle] = sender, windows
        self.engine.see_consumer(consumer)

    def octets(self, octets):
        """The address of octets (bytes); they are to be kept as long as it."""
        return ffi.from_buffer("uint8_t[]", octets)

    def ingest(self, link, route, source):
        """Transfers of a link and dispositions of its session."""
        if self.engine.burying is None:
            return lib.leveret_amqp_1_0_ingest(self.pointers, link, route, source)
        return self.engine.burying.run(lib.leveret_amqp_1_0_ingest, link, route, source)

    def take_in(self, link, route, source, room, descriptor):
        """Read from a socket behind what `source` has, and ingest: the octets read; below 0: none now; 0: the peer is gone."""
        if self.engine.burying is None:
            return lib.leveret_amqp_1_0_take_in(self.pointers, link, route, source, room, descriptor, self.answer)
        return self.engine.burying.run(lib.leveret_amqp_1_0_take_in, link, route, source, room, descriptor, self.answer)

    def receive(self, flat, link):
        """Have C process the flows of an outgoing link (or None: of none) itself: `flat` is its session's record."""
        if link is None or link.state != "attached" or link.consumer is None or link.work is not None or link.drain:
            flat.receiver = ffi.NULL
        else:
            flat.receiver, flat.receiver_handle, flat.receiver_consumer = link.sender, link.handle, link.consumer.handle

    def deliver(self, consumer, limit, prefix, prefix_size, settled, noted, frame_size_max, target, at, end):
        """Deliveries to a consumer: the position behind them."""
        given = (consumer, limit, prefix, prefix_size, settled, noted, frame_size_max, target, at, end)
        if self.engine.burying is None:
            return lib.leveret_amqp_1_0_deliver(self.pointers, *given)
        return self.engine.burying.run(lib.leveret_amqp_1_0_deliver, *given)

    def read_stream(self, link, most, end, prefix, nulls):
        """Deliver up to `most` messages of a stream to a link, up to the offset `end`, into its send buffer: how many, and the first and
        the last entry of these. `prefix`: as `deliver_to`; `nulls`: fields behind the six that it counts."""
        reading, consumer, send = self.reading, link.consumer, link.protocol.send
        reading.consumer, reading.most, reading.end = consumer.handle, most, end
        reading.cursor, reading.offset, reading.delivered = consumer.cursor, consumer.cursor_offset, consumer.queue.delivered
        reading.tells_position, reading.nulls, reading.settled = link.tells_position, nulls, link.settled
        at = lib.leveret_amqp_1_0_read_stream(
            self.pointers,
            reading,
            ffi.from_buffer("uint8_t[]", prefix),
            len(prefix),
            link.protocol.frame_max_out,
            send.address,
            send.end,
            send.size - limits.REPLY_ROOM,
        )
        if reading.made:
            send.wrote(at)
            consumer.cursor, consumer.cursor_offset = reading.cursor, reading.offset
            consumer.queue.delivered = reading.delivered
        return reading.made, reading.first, reading.last

    def head(self, message, failed, noted):
        """See core/amqp_1_0/convert.py, head_for_1_0: the octets; None: it has to make them."""
        octets = ffi.new("uint8_t[]", HEAD_MAX)
        size = lib.leveret_amqp_1_0_head(self.pointers, message, failed, noted, octets, HEAD_MAX)
        return None if size < 0 else bytes(ffi.buffer(octets, size))
