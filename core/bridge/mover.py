"""A bridge's decisions: which message goes upstream next, which are confirmed, which are tried again, which may be settled at the source.

    record -> lane (live or replay) -> flight -> confirmed -> settled at the source
                                         |-> nacked, returned: retry -> lane ... -> parting: to the refused queue of the bridge

Laws
- The bridge settles a delivery when upstream has confirmed all its records (or they are in the refused queue), never before.
- With `dense` numbers (a stream's offsets) a record that comes twice, by two lanes or after a reconnection, is sent once: its second
  delivery waits for the same confirm. Without dense numbers each delivery is a record of its own.
- The mover sends each lane in order; refused messages come later. The live lane goes first; the replay lane obeys its buckets while there
  is one.
- No socket, clock or randomness; `now` is wrapping milliseconds.
"""

from ..errors import ProtocolError
from ..shim import after, elapsed
from .bucket import Bucket
from .ranges import Ranges

LIVE = 0
REPLAY = 1

RETRY_MS, RETRY_MS_MAX = 1000, 30000


class Delivery:
    """A delivery of the source: `tag` on `channel` of its connection number `epoch`. `left`: records that are not done."""

    __slots__ = ("channel", "tag", "epoch", "first", "left")

    def __init__(self, channel, tag, epoch, first, left):
        self.channel = channel
        self.tag = tag
        self.epoch = epoch
        self.first = first
        self.left = left


class Record:
    """A message on its way. `number`: its sequence; `exchange`, `key`, `octets` (properties) and `body` as they came."""

    __slots__ = ("number", "exchange", "key", "octets", "body", "lane", "deliveries", "tries", "due", "reason", "marked", "arrived")

    def __init__(self, number, exchange, key, octets, body, lane, delivery, arrived):
        self.number = number
        self.exchange = exchange
        self.key = key
        self.octets = octets
        self.body = body
        self.lane = lane
        self.deliveries = [delivery]
        self.tries = 0
        self.due = 0
        self.reason = ""  # upstream's last reason to refuse it
        self.marked = None  # (key, properties) for upstream
        self.arrived = arrived


class Mover:
    """`marks`: an amqp_0_9/bridge_marks.Marks. `attempts`: how often the mover sends a message before it gives it to the refused queue, 0:
    for ever."""

    def __init__(self, marks, dense, attempts=10, replay_messages=0, replay_octets=0, retry_ms=RETRY_MS):
        self.marks = marks
        self.dense = dense
        self.attempts = attempts
        self.retry_ms = retry_ms
        self.messages_bucket = Bucket(replay_messages)
        self.octets_bucket = Bucket(replay_octets)
        self.live = False  # there is a live lane
        self.refusing = ""  # upstream's reason to refuse the last message that it answered for; "": upstream accepted it
        self.counters = {"bridged": 0, "bridged_octets": 0, "replayed": 0, "nacked": 0, "returned": 0, "refused": 0, "doubles_held_back": 0}
        self.forget()

    def forget(self):
        """Forget all records and deliveries: the source's numbers begin anew."""
        self.records = {}  # number -> Record: all records of the mover
        self.lanes: tuple = ([], [])
        self.flight = {}  # number of the publish upstream -> Record
        self.retry = []
        self.parting = []  # records for the refused queue
        self.settled = []  # Deliveries that are done
        self.done = Ranges()
        self.counted = 0

    # From the source

    def record(self, lane, number, exchange, key, octets, body, delivery, arrived=None):
        """Add a record of a delivery. `number` None: the mover gives it a number of its own; `arrived`: seconds since 1970, or None."""
        if number is None:
            self.counted += 1
            number = self.counted
        known = self.records.get(number)
        if known is not None:
            self.counters["doubles_held_back"] += 1
            known.deliveries.append(delivery)
        elif self.done.ranges and self.done.has(number):
            self.counters["doubles_held_back"] += 1
            self.count_down(delivery)
        else:
            record = Record(number, exchange, key, octets, body, lane, delivery, arrived)
            self.records[number] = record
            self.lanes[lane].append(record)

    def source_lost(self):
        """The source's connection is lost: the source will deliver unsettled messages again."""
        for number in self.records:
            self.records[number].deliveries = []
        self.settled = []
        if not self.dense:
            self.lanes = ([], [])
            self.retry = []
            self.records = {record.number: record for record in list(self.flight.values()) + self.parting}

    # To upstream

    def publish(self, now, put):
        """Send the records that may go: `put(record)` returns the number of the publish, 0 when there is no room, -1 when the record can
        never go (and sets its `reason`). True when a record went."""
        sent = False
        if self.retry:
            sent = self._publish_due(now, put)
        live, replay = self.lanes
        while live:
            if not self._send(live[0], put):
                return sent
            live.pop(0)
            sent = True
        while replay:
            limited = self.live
            if limited and not (self.messages_bucket.allows(now) and self.octets_bucket.allows(now)):
                return sent
            record = replay[0]
            if not self._send(record, put):
                return sent
            replay.pop(0)
            sent = True
            if limited:
                self.messages_bucket.spend(1)
                self.octets_bucket.spend(len(record.body))
                self.counters["replayed"] += 1
        return sent

    def _publish_due(self, now, put):
        sent = False
        for record in [record for record in self.retry if elapsed(now, record.due) >= 0]:
            if not self._send(record, put):
                break
            self.retry.remove(record)
            sent = True
        return sent

    def _send(self, record, put):
        """True when the record needs no more of its lane: it is in flight, or it can never go."""
        if record.marked is None and not self._mark(record):
            return True
        number = put(record)
        if number > 0:
            self.flight[number] = record
        elif number < 0:
            self.parting.append(record)
        return number != 0

    def _mark(self, record):
        """Make the record's properties and key for upstream; false when the record goes to the refused queue at once."""
        reason = ""
        try:
            key = self.marks.key(record.exchange, record.key)
            octets = self.marks.put(record.octets, record.number if self.dense else None, record.exchange, record.key, record.arrived)
            if key is None:
                reason = "its routing key would be longer than 255 octets"
            elif octets is None:
                reason = "it has passed %d bridges" % self.marks.hops_max
        except (ProtocolError, ValueError) as error:
            reason = "its properties cannot be read: %s" % error
        if reason:
            record.reason = reason
            self.parting.append(record)
            return False
        record.marked = (key, octets)
        return True

    def confirmed(self, number, positive, now):
        """Upstream's answer for the publish with that number."""
        record = self.flight.pop(number, None)
        if record is None:
            return
        if not positive:
            self.counters["nacked"] += 1
            self._refused(record, record.reason or "upstream refused it (basic.nack)", now)
        elif record.reason:
            self._refused(record, record.reason, now)
        else:
            self.refusing = ""
            self.counters["bridged"] += 1
            self.counters["bridged_octets"] += len(record.body)
            self.complete(record)

    def returned(self, message):
        """Upstream returned a message for want of a route; its confirm is still to come."""
        self.counters["returned"] += 1
        for record in self._like(message):
            record.reason = "upstream has no queue for routing key %r: %d %s" % (
                message.routing_key,
                message.reply_code,
                message.reply_text,
            )

    def _like(self, message):
        """The records in flight that may be the returned message: by gateway and sequence, else by its octets; in doubt all of them."""
        in_flight = [self.flight[number] for number in sorted(self.flight) if not self.flight[number].reason]
        same = [record for record in in_flight if record.body == message.body]
        for record in same:
            if record.marked[1] == message.properties_octets and record.marked[0] == message.routing_key_octets:
                return [record]
        place = self.marks.place(message.properties_octets)
        numbered = [record for record in same if place is not None and self.marks.place(record.marked[1]) == place]
        return numbered or same or in_flight

    def _refused(self, record, reason, now):
        record.tries += 1
        record.reason = ""
        self.refusing = reason
        if self.attempts and record.tries >= self.attempts:
            record.reason = reason
            self.parting.append(record)
            return
        record.due = after(now, min(self.retry_ms << min(record.tries - 1, 10), max(RETRY_MS_MAX, self.retry_ms)))
        self.retry.append(record)

    def parted(self, record):
        """The refused queue has a record."""
        self.counters["refused"] += 1
        self.complete(record)

    def complete(self, record):
        """Count a record that is done down in its deliveries."""
        self.records.pop(record.number, None)
        if self.dense:
            self.done.add(record.number)
        for delivery in record.deliveries:
            self.count_down(delivery)

    def count_down(self, delivery):
        """Count down the records that a delivery waits for."""
        delivery.left -= 1
        if delivery.left == 0:
            self.settled.append(delivery)

    def target_lost(self):
        """Send unconfirmed records once more, in their lanes and their order: upstream's connection is lost."""
        for lane in (LIVE, REPLAY):
            again = [self.flight[number] for number in sorted(self.flight) if self.flight[number].lane == lane]
            if again:
                self.lanes[lane][:] = sorted(again + self.lanes[lane], key=number_of)
        self.flight = {}
        for number in self.records:
            record = self.records[number]
            if record not in self.parting:
                record.reason = ""


def number_of(record):
    """The sequence by which records are sorted."""
    return record.number
