"""AMQP 0-9-1's row of the hot path in C: the form of core/amqp_0_9/hot_row.py that the engine in C gives its sessions."""

from leveret.core.memory import layout

from ._hot import ffi, lib

LARGE = 16384  # octets of a frame that goes from the socket to its blocks


class Row:
    """As core/amqp_0_9/hot_row.py has it. `wire` is what C calls by itself."""

    name = "amqp_0_9"
    intake_least = LARGE
    wire = lib.leveret_amqp_0_9_wire()

    def __init__(self, engine):
        self.pointers = engine.pointers
        self.round = engine.round
        self.intake = ffi.new("leveret_intake *")
        self.intake.least = self.intake_least
        self.numbers = ffi.new("int32_t[]", 3)

    def ingest(self, numbers, source):
        """See core/amqp_0_9/hot_in.py."""
        return lib.leveret_amqp_0_9_ingest(self.pointers, numbers, source)

    def pump(self, consumer, limit, prefix, prefix_size, frame_size_max, target, at, end):
        """See hot.pump."""
        output = self.round.readers[consumer // layout.CONSUMER_WIDTH].output
        return self.wire.pump(self.pointers, consumer, limit, prefix, prefix_size, frame_size_max, target, at, end, output)

    def put_body(self, left, frame_size_max, channel_number, target, at, end):
        """See hot_out.put_body."""
        return lib.leveret_amqp_0_9_put_body(self.pointers, left, frame_size_max, channel_number, target, at, end)

    def take_in(self, session, channel, descriptor):
        """See Session.take_in."""
        intake, receive = self.intake, session.receive
        intake.octets = receive.address
        intake.size = receive.size
        intake.start, intake.end = receive.start, receive.end
        intake.message = channel.message
        intake.channel_number = channel.number
        intake.frame_size_max = session.frame_size_max
        intake.body_left = channel.body_left
        intake.frame_left = session.body_left
        intake.frame_size = session.body_size
        count = lib.leveret_amqp_0_9_take_in(self.pointers, intake, descriptor)
        receive.start, receive.end = intake.start, intake.end
        channel.body_left = intake.body_left
        session.body_left = intake.frame_left
        session.body_size = intake.frame_size
        return None if count < 0 else count

    def pack(self, entry, most, octets_max):
        """See core/amqp_0_9/packed.py."""
        numbers = self.numbers
        numbers[0], numbers[1], numbers[2] = entry, most, octets_max
        lib.leveret_amqp_0_9_pack_reach(self.pointers, numbers)
        body = bytearray(numbers[2])
        lib.leveret_amqp_0_9_pack(self.pointers, entry, numbers[1], ffi.from_buffer("uint8_t[]", body))
        return body, numbers[1], numbers[0]
