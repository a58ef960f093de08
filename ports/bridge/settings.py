"""What a bridge is told: one Settings each, whether from a file, the command line or a board's own code.

Every setting has a row: name, kind, default (None: none), meaning. Those of one direction only are refused in the other. A mistake is a
ValueError with one sentence.
"""

from ...core.amqp_0_9.bridge_marks import Marks
from ...core.shim import MICROPYTHON
from ...core.stream import age_of
from ..url import read_url

TEXT, TEXTS, WHOLE, SECONDS, TABLE = "a text", "a URL or a list of URLs", "a whole number", "a number of seconds", "a table of texts"

WAIT, DROP_OLDEST = "wait", "drop-oldest"

ROWS = (
    ("name", TEXT, None, "what the bridge is called; its queues are NAME.outbox and NAME.refused"),
    ("direction", TEXT, "up", "up: from here to upstream; down: from upstream to here"),
    ("gateway", TEXT, None, "up: the gateway's id, one for each bridge: x-gateway on every message"),
    ("queue", TEXT, None, "the queue to take from; up: here, down: upstream"),
    ("stream", TEXT, None, "up: the stream to read, instead of a queue"),
    ("upstream", TEXTS, None, "where upstream is; several are tried in turn"),
    ("exchange", TEXT, None, "the exchange to publish to; up: upstream, down: here"),
    ("routing_key", TEXT, None, "template of the routing key; left out: it stays"),
    ("headers", TABLE, None, "headers to set, each a template"),
    ("header_prefix", TEXT, "", "put before the names of the publisher's headers"),
    ("hops_max", WHOLE, 8, "bridges that a message may pass"),
    ("prefetch", WHOLE, 32 if MICROPYTHON else 1000, "messages held at a time, in each lane"),
    ("backlog_octets_max", WHOLE, None, "up from a queue: octets that the backlog may have; left out: as much as the broker has room for"),
    ("backlog_age_max", TEXT, None, "up from a queue, with drop-oldest: age that a message may have, as 7D or 12h"),
    ("backlog_full", TEXT, WAIT, "up from a queue: wait (messages stay in the queue, its own limits hold) or drop-oldest (counted)"),
    ("replay_messages_per_second", WHOLE, 0, "up: how fast a backlog follows while live messages go ahead; 0: as fast as it goes"),
    ("replay_octets_per_second", WHOLE, 0, "the same in octets"),
    ("refusal_attempts", WHOLE, 10, "how often a message is sent before it goes to NAME.refused; 0: for ever"),
    ("heartbeat_seconds", WHOLE, 15, "heartbeat; a link is given up after two of silence"),
    ("connect_seconds", SECONDS, 10, "for the connection, TLS and the log-in together"),
    ("stall_seconds", SECONDS, 30, "without a confirm, or without a message while there are some: connected anew"),
    ("reconnect_seconds_min", SECONDS, 0.5, "the shortest pause between attempts"),
    ("reconnect_seconds_max", SECONDS, 60, "the longest"),
    ("buffer_size", WHOLE, 4096 if MICROPYTHON else 262144, "octets of each of the four buffers: two links, in and out"),
    ("frame_size_max", WHOLE, 8192 if MICROPYTHON else 131072, "frame-max offered, not a buffer; RabbitMQ 4.1 refuses less than 8192"),
)

ONLY_UP = ("gateway", "stream", "replay_messages_per_second", "replay_octets_per_second", "backlog_octets_max", "backlog_age_max",
           "backlog_full")
OF_AN_OUTBOX = ("backlog_octets_max", "backlog_age_max", "backlog_full")
# Of every number; of the others NUMBER_MAX and SECONDS_MAX are the most, 0 and SECONDS_LEAST the least.
LEAST = {"prefetch": 1, "hops_max": 1, "buffer_size": 2048, "frame_size_max": 8192, "backlog_octets_max": 1024}
MOST = {"prefetch": 4000, "hops_max": 255, "heartbeat_seconds": 3600, "refusal_attempts": 1000000, "buffer_size": 1 << 28,
        "frame_size_max": 1 << 24, "backlog_octets_max": 1 << 50}
NUMBER_MAX = 1 << 30
SECONDS_LEAST, SECONDS_MAX = 0.01, 86400  # times are kept in 30 bits of milliseconds

# Octets of texts that become short strings of the protocol, with what the bridge puts behind them.
SIZES = {"name": 200, "gateway": 200, "queue": 255, "stream": 255, "exchange": 255, "header_prefix": 127}

STABLE_MS = 60000  # a connection that held so long was a good one: the next pause starts with the shortest again


class Settings:
    """One attribute for each row, and `upstream_urls` (a list of Url), `stable_ms`. `plain`: up, but without numbers (no gateway)."""

    def __init__(self, given, plain=False):
        names = [row[0] for row in ROWS]
        for name in given:
            if name not in names:
                raise ValueError("there is no setting %r; there are %s" % (name, ", ".join(names)))
        for name, kind, default, _ in ROWS:
            value = given.get(name)
            setattr(self, name, default if value is None else checked(name, kind, value))
        self.plain = plain
        self.stable_ms = STABLE_MS
        self._check(given)

    def _check(self, given):
        """What settings must be together."""
        need(self.name, "it needs a name of 1 to 200 octets")
        need(self.direction in ("up", "down"), "direction is up or down, not %r" % self.direction)
        need(self.exchange is not None, "it needs an exchange to publish to")
        need(self.upstream, "it needs upstream, a URL as amqps://user:password@host/")
        need(self.backlog_full in (WAIT, DROP_OLDEST), "backlog_full is %s or %s, not %r" % (WAIT, DROP_OLDEST, self.backlog_full))
        need(self.reconnect_seconds_min <= self.reconnect_seconds_max, "reconnect_seconds_min must not be above reconnect_seconds_max")
        self.upstream_urls = [read_url(url) for url in self.upstream]
        if self.up:
            need((self.queue is None) != (self.stream is None), "it needs a queue or a stream to take from, and not both")
            need(self.plain or self.gateway, "it needs a gateway, an id that no other bridge has")
        else:
            need(self.queue is not None, "it needs a queue, the one upstream to take from")
        for name in given:
            need(self.up or name not in ONLY_UP, "%s is for direction up" % name)
            need(self.outbox is not None or name not in OF_AN_OUTBOX, "%s is for a queue: a stream has its own retention" % name)
        need(self.backlog_age_max is None or age_of(self.backlog_age_max) is not None, "backlog_age_max is a number and one of Y M D h m s")
        need(self.backlog_age_max is None or self.backlog_full == DROP_OLDEST, "backlog_age_max needs backlog_full = \"drop-oldest\"")
        self.marks()

    @property
    def up(self):
        """From here to upstream."""
        return self.direction == "up"

    @property
    def outbox(self):
        """The bridge's own stream, where it has one."""
        return self.name + ".outbox" if self.up and self.queue is not None and not self.plain else None

    @property
    def refused(self):
        """The queue of what upstream does not want."""
        return self.name + ".refused"

    def marks(self, gateway=None):
        """The Marks; `gateway`: as it is sent, when that is not as it was set. Raises ValueError for a wrong template."""
        return Marks("" if not self.up or self.plain else gateway or self.gateway, self.routing_key, self.headers, self.header_prefix,
                     self.hops_max)

    def outbox_arguments(self):
        """x-arguments of the outbox."""
        arguments = {"x-queue-type": "stream"}
        if self.backlog_octets_max is not None:
            arguments["x-max-length-bytes"] = self.backlog_octets_max
        if self.backlog_age_max is not None:
            arguments["x-max-age"] = self.backlog_age_max
        if self.backlog_full == WAIT:
            arguments["x-stream-hold"] = self.name
        return arguments


def need(holds, sentence):
    """Raise ValueError(sentence) unless `holds`."""
    if not holds:
        raise ValueError(sentence)


def checked(name, kind, value):
    """A value of the kind. Raises ValueError."""
    if kind == TEXTS and isinstance(value, str):
        value = [value]
    whole = isinstance(value, int) and not isinstance(value, bool)
    least, most = LEAST.get(name, 0), MOST.get(name, NUMBER_MAX)
    good = {
        TEXT: isinstance(value, str), WHOLE: whole and least <= value <= most,
        SECONDS: (whole or isinstance(value, float)) and SECONDS_LEAST <= value <= SECONDS_MAX,
        TEXTS: isinstance(value, list) and bool(value) and all([isinstance(each, str) for each in value]),
        TABLE: isinstance(value, dict) and all([isinstance(value[each], str) for each in value]),
    }[kind]
    if not good:
        range_ = {WHOLE: (least, most), SECONDS: (SECONDS_LEAST, SECONDS_MAX)}.get(kind)
        within = " from %s to %d" % range_ if range_ else ""
        shown = "" if kind == TEXTS else "is %r; it " % (value,)  # a URL has a password
        raise ValueError("%s %smust be %s%s" % (name, shown, kind, within))
    if name in SIZES and len(value.encode("utf-8")) > SIZES[name]:
        raise ValueError("%s has %d octets; it must have at most %d" % (name, len(value.encode("utf-8")), SIZES[name]))
    return value
