"""What a broker counts. The hot functions count what is frequent in the flat state; it is added here."""

from ..memory import layout

COUNTERS = (
    "connections",
    "connections_refused",
    "strangers_closed",
    "logins_refused",
    "addresses_refused",
    "access_refused",
    "published",
    "delivered",
    "got",
    "got_no_ack",
    "delayed",
    "settled",
    "returned",
    "unroutable",
    "alternate_routed",
    "lost_on_purpose",
    "redelivered",
    "rejected",
    "purged",
    "held",
    "internal_errors",
    "expired",
    "queues_expired",
    "dropped_head",
    "rejected_publishes",
    "dead_lettered",
    "dead_letters_lost",
    "delivery_limit",
    "deduplicated",
    "replaced",
    "settle_timeouts",
    "commits",
    "rollbacks",
    "blocked",
    "channel_errors",
    "connection_errors",
    "dropped_with_queue",
    "retained_out",
    "stream_duplicates",
    "readers_overtaken",
    "consumers_cancelled",
    "management_requests",
    "management_failures",
    "moved",
    "poisoned",
    "poison_dropped",
    "publishers_blocked",
    "staged_expired",
    "stream_dropped",
)
FOLDED = (  # those that the flat state counts
    ("published", layout.STATE_PUBLISHED),
    ("delivered", layout.STATE_DELIVERED),
    ("got", layout.STATE_GOT),
    ("got_no_ack", layout.STATE_GOT_NO_ACK),
    ("settled", layout.STATE_SETTLED),
    ("expired", layout.STATE_EXPIRED),
    ("dropped_head", layout.STATE_DROPPED_HEAD),
    ("rejected", layout.STATE_REJECTED),
    ("alternate_routed", layout.STATE_ALTERNATE),
    ("redelivered", layout.STATE_REDELIVERED),
    ("replaced", layout.STATE_REPLACED),
)


def fold(tables, counters):
    """Add the counts of the flat state and of the tables to `counters`, a dict with a number for each of COUNTERS."""
    state = tables.state
    for name, place in FOLDED:
        counters[name] += state[place]
        state[place] = 0
    counts = tables.counts
    for name in counts:
        counters[name] += counts[name]
        counts[name] = 0
