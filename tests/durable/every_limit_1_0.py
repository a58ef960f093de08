"""The steps of every_limit.py over AMQP 1.0."""

import struct

import wire_1_0 as wire
from every_limit_names import name_of

OTHERS = 3  # connections that speak AMQP 1.0, of which one may have three quarters of all links
SESSIONS = 4  # of each of these
WORKS = 16  # transactions of a session


class Links:
    """Part of every_limit.Fill."""

    def __init__(self):
        self.others = []
        self.links = 0
        self.credit = []  # (connection, handle, credit) of those that remember deliveries

    def open_others(self):
        """The connections, each with its sessions."""
        for number in range(OTHERS):
            other = wire.Wire(self.broker.host, self.broker.port, timeout_s=20)
            other.open(container=name_of("o", number, self.limits.argument_size_max // 4))
            self.others.append(other)
            for channel in range(SESSIONS):
                other.begin(channel)

    def attached(self, number, channel, handle, receives, address, **given):
        """A link with the longest name, on one of the connections."""
        name = name_of("l", self.links, self.limits.argument_size_max // 4)
        self.others[number].attach(name, handle, receives, address, channel, **given)
        self.links += 1

    def fill_works(self):
        """Transactions that are not discharged, as many as each session may have."""
        octets = b"\x00\x53\x77" + wire.value(wire.Described(wire.DECLARE, [None]))
        coordinator = wire.Described(wire.COORDINATOR, [None])
        for other in self.others:
            for channel in range(SESSIONS):
                attach = wire.performative(
                    wire.ATTACH, f"c{channel}", wire.uint(254), False, None, None, None, coordinator, None, None, wire.uint(0)
                )
                other.send(wire.frame(channel, attach))
                other.expect(wire.FLOW)
                self.links += 1
                for number in range(WORKS):
                    other.send(wire.frame(channel, wire.transfer(254, number, octets)))
                    other.expect(wire.DISPOSITION)

    def fill_targets(self):
        """As many targets as may remember deliveries. Every second leads to no queue: its deliveries are released, not remembered."""
        client = self.clients[0]
        client.call("queue.declare-ok", 1, "queue.declare", queue="targets", durable=True, arguments={"x-max-length": 1})
        lasting = (None, None, wire.uint(60))  # its timeout
        for number in range(self.limits.target_count_max):
            other, handle = number % OTHERS, number // OTHERS
            self.attached(
                other, 0, handle, False, ("/queues/targets", "/exchanges/amq.direct/none")[handle % 2], second=True, target=lasting
            )
            self.credit.append((other, handle, self.others[other].expect(wire.FLOW)[1][6]))

    def fill_deliveries(self):
        """As many deliveries as all these links have credit for, none of which is settled; half of them remembered."""
        counts = [WORKS] * OTHERS  # delivery-ids
        for other, handle, credit in self.credit:
            for _ in range(credit):
                octets = wire.transfer(handle, counts[other], wire.data(b""), tag=b"%032d" % counts[other])
                self.others[other].send(wire.frame(0, octets))
                counts[other] += 1
            told = -1
            while credit and told != counts[other] - 1:
                _, first, last = self.others[other].expect(wire.DISPOSITION)[1][:3]
                told = first if last is None else last

    def fill_links(self):
        """Links with the longest names, and half of them with filters; as many as there are places for."""
        selector = "a=1"
        filters = {wire.Symbol("f"): wire.Described(0x0000468C00000004, selector)}
        source = (*[None] * 5, wire.Symbol("copy"), filters)  # a browser is no consumer
        at = 0
        try:
            while True:
                number, channel, handle = at % OTHERS, 1 + at // (OTHERS * 200) % (SESSIONS - 1), at // OTHERS % 200
                receives = at % 2 == 0
                self.attached(number, channel, handle, receives, "/queues/targets", source=source if receives else ())
                at += 1
        except RuntimeError as error:
            assert "link_count_max" in str(error), error
        assert self.links > self.limits.link_count_max * 3 // 5, self.links

    def fill_heads(self):
        """Messages whose properties have not ended, in half-sent deliveries."""
        size = self.limits.properties_size_max - 1000
        annotations = b"\x00\x53\x72\xd1" + struct.pack(">II", size + 200, 2) + b"\xa3\x01a\xb1"
        annotations += struct.pack(">I", size) + bytes(size)
        for other in self.others:
            other.send(wire.frame(1, wire.transfer(0, WORKS, annotations, more=True)))
