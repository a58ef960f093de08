"""The broker's own counts by the names that RabbitMQ's API has for them."""

from typing import Any

from ...core.management import overview, statistics

# RabbitMQ's name of what all channels have done -> the broker's counters (core/broker/counters.py), added up
SOURCES = {
    "publish": ("published",),
    "deliver_get": ("delivered", "got", "got_no_ack"),
    "get": ("got",),
    "get_no_ack": ("got_no_ack",),
    "ack": ("settled",),
    "redeliver": ("redelivered",),
    "return_unroutable": ("returned",),
    "drop_unroutable": ("unroutable",),
}
COUNTED = tuple(SOURCES)
LOGGED = ("log_octets", "log_syncs")


def of_broker(broker: Any) -> dict[str, int]:
    """Every count whose growth is watched."""
    counters = overview.counters(broker)
    made = {name: sum(counters[source] for source in sources) for name, sources in SOURCES.items()}
    ready, unsettled = statistics.totals_of_queues(broker)
    made["messages"], made["messages_ready"], made["messages_unacknowledged"] = ready + unsettled, ready, unsettled
    made["connection_created"] = counters["connections"]
    made["connection_closed"] = max(counters["connections"] - len(broker.connections) + len(broker.places.surplus), 0)
    for name in LOGGED:
        made[name] = counters.get(name, 0)
    return made
