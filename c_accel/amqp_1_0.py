"""AMQP 1.0's row of the hot path in C: what core/amqp_1_0/hot_row.py asks the engine in C for."""

from ._hot import ffi, lib

HEAD_MAX = 2048  # octets


class Row:
    """As core/amqp_1_0/hot_row.py has it."""

    name = "amqp_1_0"
    reads_flows = True
    notes_routes = True

    def __init__(self, engine):
        self.pointers = engine.pointers

    def link(self):
        """A leveret_amqp_1_0_link of c_accel/amqp_1_0.h: its fields by name."""
        return ffi.new("leveret_amqp_1_0_link *")

    def octets(self, octets):
        """The address of octets (bytes); they are to be kept as long as it."""
        return ffi.from_buffer("uint8_t[]", octets)

    def ingest(self, link, route, source):
        """Transfers of a link and dispositions of its session."""
        return lib.leveret_amqp_1_0_ingest(self.pointers, link, route, source)

    def deliver(self, consumer, limit, prefix, prefix_size, settled, noted, frame_size_max, target, at, end):
        """Deliveries to a consumer: the position behind them."""
        return lib.leveret_amqp_1_0_deliver(
            self.pointers, consumer, limit, prefix, prefix_size, settled, noted, frame_size_max, target, at, end
        )

    def head(self, message, noted):
        """See core/amqp_1_0/convert.py, head_for_1_0: the octets; None: it has to make them."""
        octets = ffi.new("uint8_t[]", HEAD_MAX)
        size = lib.leveret_amqp_1_0_head(self.pointers, message, noted, octets, HEAD_MAX)
        return None if size < 0 else bytes(ffi.buffer(octets, size))
