"""A client of AMQP 1.0 of the simulation: one connection with one session, driven through the endpoint contract in pieces of any size.

Its links are Ends. What comes on one is told to the End's owner (accounts.py, deeds_1_0.py): `attached`, `delivered`, `told` (what one of
our deliveries came to), `settled` (the broker has settled one of its own), `gone`. A session or a link that the broker ends is left as it
wants; a session begins again.
"""

from peer_1_0 import body_of, performative, sasl
from wire_client import WireClient

from leveret.core.amqp_1_0 import composites, frame
from leveret.core.amqp_1_0.spec_1_0 import HEADER_AMQP, HEADER_SASL
from leveret.core.connection.connection import Connection

MASK = 0xFFFFFFFF
HANDLES = 12
WINDOW = 40  # transfers that come before the client says that more may


class End:
    """A client's end of a link. `receives`: the broker sends on it."""

    def __init__(self, client, owner, name, handle, receives):
        self.client = client
        self.owner = owner
        self.name = name
        self.handle = handle
        self.receives = receives
        self.open = False
        self.leaving = False
        self.count = 0  # delivery-count
        self.credit = 0
        self.arriving = None  # [fields of the first transfer, octets]
        self.half = b""  # octets that are left of a message that is half sent
        self.number = None  # delivery-id of the last one
        self.settles = None  # snd-settle-mode: True: all are sent settled, False: none, None: some
        self.second = False  # receiver-settle-mode

    def usable(self):
        """True while something can be sent on it."""
        client = self.client
        return self.open and not self.leaving and client.lives() and client.links.get(self.handle) is self


class Client10(WireClient):
    """One connection of `world`, for a container."""

    def __init__(self, world, name, container):
        self.world = world
        self.name = name
        self.container = container
        self.connection = Connection(world.broker, name, True)
        self.outbox = b""
        self.inbox = b""
        self.sides = {}
        self.begin()
        self.log_in()

    def log_in(self):
        """Everything up to the session in one go (section 2.4.2)."""
        chance = self.world.tens
        opening = performative("open", container_id=self.container, max_frame_size=chance.pick((700, 1024, 4096)), idle_time_out=None)
        self.outbox = HEADER_SASL + sasl("sasl-init", mechanism="PLAIN", initial_response=b"\x00guest\x00guest") + HEADER_AMQP
        self.outbox += opening + self.outbox_behind
        for _ in range(8):
            self.move(1 << 20)
            self.world.broker.run()

    def lives(self):
        """True while its connection is open, to a broker that has not ended."""
        return not self.connection.closed and self.connection.broker is self.world.broker

    def begin(self):
        """A session of our own numbers."""
        chance = self.world.tens
        self.begun = False
        self.ending = False
        self.links = {}  # by our handle
        self.theirs = {}  # by the broker's
        self.sent = {}  # delivery-id -> (End, what its owner gave)
        self.next_out = chance.pick((0, 7, 0xFFFFFFF8))
        self.next_delivery = chance.pick((0, 3, 0xFFFFFFFA))
        self.window = 0
        self.next_in = 0
        self.came = 0
        given = {"next_outgoing_id": self.next_out, "incoming_window": WINDOW, "outgoing_window": 100}
        self.outbox_behind = performative("begin", **given)

    def begin_again(self):
        """The session has ended."""
        for end in list(self.links.values()):
            end.owner.gone(end)
        self.begin()
        self.outbox += self.outbox_behind

    # What comes

    def parse(self):
        """Take the frames that are whole."""
        while True:
            if self.inbox[:4] == b"AMQP":
                if len(self.inbox) < 8:
                    return
                self.inbox = self.inbox[8:]
            found = frame.read(self.inbox, 0, len(self.inbox), 1 << 20)
            if found is None:
                return
            _, _, at, end = found
            octets, self.inbox = self.inbox[:end], self.inbox[end:]
            if at < end:
                name, fields, at = composites.read(octets, at, end)
                getattr(self, "on_" + name.replace("-", "_"))(fields, octets[at:])

    def ignored(self, fields, payload):
        """It says nothing that we ask for."""

    on_open = on_sasl_mechanisms = on_sasl_outcome = ignored

    def on_begin(self, fields, payload):
        self.begun = True
        self.window = fields["incoming-window"]
        self.next_in = fields["next-outgoing-id"]

    def on_attach(self, fields, payload):
        for end in self.links.values():
            if end.name == fields["name"] and end.receives != fields["role"]:
                end.open = True
                end.second = fields["rcv-settle-mode"] == 1
                end.count = fields["initial-delivery-count"] or 0 if end.receives else end.count
                self.theirs[fields["handle"]] = end
                if fields["source" if end.receives else "target"] is not None:
                    end.owner.attached(end, fields)

    def on_flow(self, fields, payload):
        if fields["next-incoming-id"] is not None:
            self.window = (fields["next-incoming-id"] + fields["incoming-window"] - self.next_out) & MASK
        end = self.theirs.get(fields["handle"])
        if end is not None and end.receives:
            end.count = fields["delivery-count"]  # a drained link has come to its delivery-limit (section 2.6.7)
        elif end is not None:
            end.credit = max(signed(fields["delivery-count"] + fields["link-credit"] - end.count), 0)

    def on_transfer(self, fields, payload):
        self.next_in = (self.next_in + 1) & MASK
        self.came += 1
        if self.came >= WINDOW // 2:
            self.flow()
        end = self.theirs[fields["handle"]]
        if end.arriving is None:
            end.arriving = [fields, b""]
        end.arriving[1] += payload
        if fields["more"]:
            return
        first, octets = end.arriving
        end.arriving = None
        end.count = (end.count + 1) & MASK
        if not fields["aborted"] and not end.leaving:
            message = end.owner.name_of(body_of(octets))
            end.owner.delivered(end, first["delivery-id"], first["delivery-tag"], message, first, octets)

    def on_disposition(self, fields, payload):
        last = fields["first"] if fields["last"] is None else fields["last"]
        number = fields["first"]
        while True:
            if fields["role"]:
                end, given = self.sent.get(number, (None, None))
                if end is not None:
                    if fields["settled"]:
                        del self.sent[number]
                    end.owner.told(end, number, given, fields["state"], fields["settled"])
            else:
                for end in list(self.links.values()):
                    if end.receives and fields["settled"]:
                        end.owner.settled(end, number)
            if number == last:
                break
            number = (number + 1) & MASK

    def on_detach(self, fields, payload):
        end = self.theirs.pop(fields["handle"])
        if fields["error"] is not None:
            self.world.note("%s: detach of %s: %s" % (self.name, end.name, fields["error"]))
        if not end.leaving:
            self.outbox += performative("detach", handle=end.handle, closed=True)
        self.links.pop(end.handle, None)
        end.leaving = True
        self.sent = {number: each for number, each in self.sent.items() if each[0] is not end}
        end.owner.gone(end)

    def on_end(self, fields, payload):
        self.world.note("%s: end %s" % (self.name, fields["error"]))
        if fields["error"] is not None:
            self.world.count_error(fields["error"])
        if not self.ending:
            self.outbox += performative("end")
        self.begin_again()

    def on_close(self, fields, payload):
        self.world.note("%s: close %s" % (self.name, fields["error"]))
        if fields["error"] is not None:
            self.world.count_error(fields["error"])
        self.outbox = performative("close")
        self.begun = False
        self.links = {}

    # What it does

    def attach(self, owner, name, receives, given):
        """A link: its End, or None where there is no handle. `given`: fields of the attach beside name, handle and role."""
        free = [handle for handle in range(HANDLES) if handle not in self.links]
        former = [end for end in self.links.values() if end.name == name]
        for end in former:
            if end.usable():
                self.detach(end, False)  # its owner was elsewhere meanwhile, and has come back
        if not self.begun or self.ending or not free or former:
            return None
        end = self.links[free[0]] = End(self, owner, name, free[0], receives)
        end.settles = {0: False, 1: True}.get(given.get("snd_settle_mode"))
        if not receives:
            end.count = given["initial_delivery_count"] = self.world.tens.pick((0, 0xFFFFFFFE))
        self.outbox += performative("attach", name=name, handle=end.handle, role=receives, **given)
        return end

    def detach(self, end, closed):
        """The end of a link."""
        end.leaving = True
        self.outbox += performative("detach", handle=end.handle, closed=closed)

    def end_session(self):
        """The end of the session; what comes until the answer is not for us any more."""
        if self.begun and not self.ending:
            self.ending = True
            for end in self.links.values():
                end.leaving = True
            self.outbox += performative("end")

    def may_send(self, end):
        """True when a delivery may begin on a link."""
        return end is not None and end.client is self and end.usable() and end.credit > 0 and self.window > 4 and not end.half

    def deliver(self, end, tag, octets, given=None, most=400, half=False, **fields):
        """Begin a delivery: its delivery-id. `given`: what its owner is told it by; `half`: all but the last of several transfers."""
        number = self.next_delivery
        self.next_delivery = (number + 1) & MASK
        end.count = (end.count + 1) & MASK
        end.credit -= 1
        end.number = number
        if not fields.get("settled"):
            self.sent[number] = (end, given)
        fields.update(delivery_id=number, delivery_tag=tag, message_format=0)
        while len(octets) > most:
            self.transfer(end, octets[:most], more=True, **fields)
            octets, fields = octets[most:], {}
            most = 400
        if half:
            self.transfer(end, octets[:1], more=True, **fields)
            end.half = octets[1:]
        else:
            self.transfer(end, octets, **fields)
        return number

    def go_on(self, end, aborted):
        """The end of a delivery that is half sent."""
        self.transfer(end, b"" if aborted else end.half, aborted=aborted or None)
        end.half = b""

    def transfer(self, end, octets, **fields):
        """One frame."""
        self.outbox += performative("transfer", 0, octets, handle=end.handle, **fields)
        self.next_out = (self.next_out + 1) & MASK
        self.window -= 1

    def dispose(self, receiver, first, last, settled, state):
        """A disposition."""
        self.outbox += performative("disposition", role=receiver, first=first, last=last, settled=settled, state=state)

    def flow(self, end=None, credit=0, **fields):
        """Our windows, and with an End its credit."""
        if end is not None:
            fields.update(handle=end.handle, link_credit=credit, delivery_count=end.count)
        self.came = 0
        given = {"next_incoming_id": self.next_in, "incoming_window": WINDOW, "next_outgoing_id": self.next_out, "outgoing_window": 100}
        self.outbox += performative("flow", **given, **fields)

    def busy(self):
        """True while octets wait, or what was sent was not answered."""
        return bool(self.outbox) or bool(self.sent)

    def open_in_words(self):
        """What it waits for."""
        return len(self.outbox), [(number, self.sent[number][0].name) for number in self.sent]

    def settle_all(self):
        """Everything that has come on its links is accepted, and what is half sent is sent."""
        for end in list(self.links.values()):
            if end.half and end.usable():
                self.go_on(end, False)
            end.owner.settle_all(end)


def signed(number):
    """A difference of serial numbers."""
    number &= MASK
    return number - (1 << 32) if number >> 31 else number
