"""The same as same_bytes.py over AMQP 1.0: `micropython same_bytes_1_0.py SEED STEPS`.

Input: transfers of one link or another, settled or not, with headers, properties and application-properties that the hot path takes and
that it does not, some damaged; dispositions of ranges and of single deliveries, most of which accept; credit.
"""

import struct
import sys

import same_bytes
from same_bytes import Run, text

from leveret.core.amqp_1_0 import composites, frame
from leveret.core.amqp_1_0.spec_1_0 import HEADER_AMQP, HEADER_SASL
from leveret.core.connection.connection import Connection
from leveret.core.outcomes import nobody

NAMES = ("one", "two", "three")


def performative(title, fields, octets=b"", type_=frame.AMQP):
    return frame.write(type_, 0, composites.write(title, fields) + octets)


OPENING = (
    HEADER_SASL,
    performative("sasl-init", {"mechanism": "PLAIN", "initial-response": b"\x00guest\x00guest"}, b"", frame.SASL),
    HEADER_AMQP,
    performative("open", {"container-id": "same", "max-frame-size": 2048}),
    performative("begin", {"next-outgoing-id": 0, "incoming-window": 1000000, "outgoing-window": 100}),
)


def terminus(name):
    return {"address": "/queues/" + name}


def text_value(octets):
    return b"\xa1" + bytes((len(octets),)) + octets


class Run1(Run):
    """One broker with two connections."""

    def __init__(self, seed):
        Run.__init__(self, seed)
        for name in NAMES:
            self.broker.topology.declare_queue(nobody, name, False, False, False, False, {})
        self.numbers = [0, 0]

    def is_open(self, connection):
        session = connection.session.mapped.get(0) if connection.session is not None else None
        return session is not None and not session.closing and len(session.links) == 4

    def connected(self, number):
        connection = self.peers[number]
        if connection is not None and not connection.closed and not connection.ending and self.is_open(connection):
            return
        if connection is not None and not connection.closed:
            connection.received(0)
        self.peers[number] = Connection(self.broker, "peer", True)
        self.numbers[number] = 0
        for octets in OPENING:
            self.feed(number, octets)
        for handle in range(4):
            name = NAMES[handle % 2 + number]
            fields = {"name": "%d.%d" % (number, handle), "handle": handle, "role": handle > 1, "snd-settle-mode": (2, 1, 0, 1)[handle]}
            fields["source"], fields["target"] = ("source", terminus(name)), ("target", terminus(name))
            if handle < 2:
                fields["initial-delivery-count"] = 0
            self.feed(number, performative("attach", fields))

    def step(self):
        chance = self.chance
        number = chance.below(2)
        self.connected(number)
        kind = chance.below(12)
        if kind < 6:
            self.feed(number, b"".join([self.transfer(number) for _ in range(1 + chance.below(5))]))
        elif kind < 10:
            self.feed(number, self.disposition(number))
        else:
            self.feed(number, self.flow(number))

    def transfer(self, number):
        chance = self.chance
        session = self.peers[number].session.mapped.get(0)
        handle = chance.below(2)
        link = None if session is None else session.links.get(handle)
        if link is None or link.credit <= 5 and chance.below(30):
            return b""
        id_ = self.numbers[number]
        settled = handle == 1 or chance.below(2) == 1
        fields = {"handle": handle, "delivery-id": id_, "delivery-tag": struct.pack(">I", id_), "message-format": 0, "settled": settled}
        if chance.below(4) == 0:
            fields["batchable"] = True
        self.numbers[number] += 1
        octets = bytearray(performative("transfer", fields, self.message()))
        if chance.below(80) == 0:
            octets[12 + chance.below(len(octets) - 12)] ^= 1 << chance.below(8)
        return bytes(octets)

    def message(self):
        chance = self.chance
        octets = b""
        if chance.below(2):
            header = {"durable": chance.below(2) == 1, "priority": chance.below(9)}
            if chance.below(4) == 0:
                header["delivery-count"] = chance.below(3)
            octets += composites.write("header", header)
        if chance.below(2):
            properties = {"message-id": "m%d" % chance.below(1000), "content-type": "text/plain", "creation-time": 1700000000000}
            if chance.below(3):
                properties["correlation-id"] = ("ulong", chance.below(300))
            if chance.below(6) == 0:
                properties["user-id"] = b"guest"
            if chance.below(6) == 0:
                properties["subject"] = "s\u00e4"
            properties["group-sequence"] = chance.below(400)
            octets += composites.write("properties", properties)
        if chance.below(2):
            values = (b"\x40", b"\x41", b"\x54\x07", b"\x71\x00\x00\x01\x02", b"\x81" + bytes(8), text_value(b"value"), b"\xa0\x01\xff")
            values += (b"\x72\x00\x00\x00\x00", b"\x98" + bytes(16), b"\x61\x01\x02")
            table = b""
            count = chance.below(6)
            for place in range(count):
                table += text_value(b"k%d" % (place if chance.below(50) else 0)) + values[chance.below(len(values))]
            octets += b"\x00\x53\x74\xc1" + bytes((1 + len(table), 2 * count)) + table
        size = (0, 1, 40, 63, 64, 65, 200, 255, 256, 700, 1500)[chance.below(11)]
        body = bytes([65 + (index + size) % 26 for index in range(size)])
        return octets + b"\x00\x53\x75" + (b"\xa0" + bytes((size,)) if size < 256 else struct.pack(">BI", 0xB0, size)) + body

    def disposition(self, number):
        chance = self.chance
        first = self.tag(number)
        if first == 99999 and chance.below(8):
            return self.flow(number)
        state = ("accepted", {}) if chance.below(6) else (("released", {}), ("rejected", {}))[chance.below(2)]
        fields = {"role": True, "first": first, "settled": chance.below(10) > 0, "state": state}
        if chance.below(2):
            fields["last"] = first + chance.below(5)
        return performative("disposition", fields)

    def tag(self, number):
        """A delivery-id of one of the first unsettled deliveries; now and then one that there is not."""
        tables = self.broker.tables
        session = self.peers[number].session.mapped.get(0)
        entry = -1 if session is None else tables.channels[session.handle]
        if entry < 0 or self.chance.below(40) == 0:
            return 99999
        for _ in range(self.chance.below(3)):
            behind = tables.entries[entry + same_bytes.layout.ENTRY_NEXT]
            if behind >= 0:
                entry = behind
        return tables.entries[entry + same_bytes.layout.ENTRY_TAG]

    def flow(self, number):
        session = self.peers[number].session.mapped.get(0)
        handle = 2 + self.chance.below(2)
        link = None if session is None else session.links.get(handle)
        if link is None:
            return b""
        fields = {"next-incoming-id": session.next_outgoing_id, "incoming-window": 1000000, "next-outgoing-id": 0, "outgoing-window": 100}
        fields["handle"], fields["delivery-count"], fields["link-credit"] = handle, link.delivery_count, 10 + self.chance.below(30)
        return performative("flow", fields)


def main(seed, steps):
    run = Run1(seed)
    for number in range(1, steps + 1):
        run.step()
        if number % 10 == 0:
            print(number, run.taken, text(run.figures()))
    print("said", text(run.said.digest()), run.taken, run.broker.counters["internal_errors"])


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
