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
LEAST = {"prefetch": 1, "hops_max": 1, "buffer_size": 2048, "frame_size_max": 8192, "backlog_octets_max": 1024}
MOST = {"prefetch": 4000, "hops_max": 255, "heartbeat_seconds": 3600, "refusal_attempts": 1000000}

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
        need(0 < len((self.name or "").encode("utf-8")) <= 200, "it needs a name of 1 to 200 octets")
        need(self.direction in ("up", "down"), "direction is up or down, not %r" % self.direction)
        need(self.exchange is not None, "it needs an exchange to publish to")
        need(self.upstream, "it needs upstream, a URL as amqps://user:password@host/")
        need(self.backlog_full in (WAIT, DROP_OLDEST), "backlog_full is %s or %s, not %r" % (WAIT, DROP_OLDEST, self.backlog_full))
        need(0 < self.reconnect_seconds_min <= self.reconnect_seconds_max <= 86400, "reconnect_seconds_min is above 0 and at most _max")
        self.upstream_urls = [read_url(url) for url in self.upstream]
        if self.up:
            need((self.queue is None) != (self.stream is None), "it needs a queue or a stream to take from, and not both")
            need(self.plain or 0 < len((self.gateway or "").encode("utf-8")) <= 200, "it needs a gateway, an id that no other bridge has")
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
    good = {
        TEXT: isinstance(value, str), WHOLE: whole and value >= LEAST.get(name, 0),
        SECONDS: (whole or isinstance(value, float)) and value > 0,
        TEXTS: isinstance(value, list) and bool(value) and all([isinstance(each, str) for each in value]),
        TABLE: isinstance(value, dict) and all([isinstance(value[each], str) for each in value]),
    }[kind]
    if kind == WHOLE and good and name in MOST:
        good = value <= MOST[name]
    if not good:
        least = LEAST.get(name, 0)
        within = "" if kind != WHOLE else " from %d to %d" % (least, MOST[name]) if name in MOST else " of at least %d" % least
        shown = "" if kind == TEXTS else "is %r; it " % (value,)  # a URL has a password
        raise ValueError("%s %smust be %s%s" % (name, shown, kind, within))
    return value
