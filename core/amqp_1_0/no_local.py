"""The filter no-local (`apache.org:no-local-filter:list`): messages that a link's own container has published do not go to the link.

A message is a container's own when it comes over any connection of that container, or, of one that has no name, over the same connection
(core/broker/local.py has the rules). A durable subscription says it in its argument `no-local`, with its container's name, and so it holds
while the link is away, and after a start of the broker.
"""

from ..broker import local

ARGUMENT = "no-local"  # of a subscription's queue: the container whose messages it does not get


def owner_of(protocol):
    """The owner whose messages a peer's links with the filter do not get: its container's name, or the protocol."""
    return protocol.container_id or protocol


def look_for_kept(broker):
    """Subscriptions that a start of the broker has found in the log have their rule again: called before anything is published by a
    container, and of use once."""
    kept = local.of(broker)
    if not kept.has_looked:
        kept.has_looked = True
        for queue in list(broker.queues.values()):
            if isinstance(queue.arguments.get(ARGUMENT), str) and not queue.is_stream:
                local.keep_out(broker, queue, queue.arguments[ARGUMENT])
