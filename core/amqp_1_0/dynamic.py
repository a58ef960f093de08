"""Nodes that were made for a link (sections 3.5.3 and 3.5.4, dynamic), their properties (3.5.9), and when they go (3.5.10 to 3.5.13).

    delete-on-close                   with the link that they were made for: the default
    delete-on-no-links                with the last link that has it as its source or target
    delete-on-no-messages             when the link is gone and no message is left
    delete-on-no-links-or-messages    when neither a link nor a message is left

All dynamic nodes belong to their connection, and end with it at the latest. A node has the distribution modes MODES, whichever of them its
link asks for; our attach says what the node has.
"""

from . import composites, nodes
from .conditions import INVALID_FIELD, LinkError

if False:  # for the type checker alone
    from typing import Any

LIFETIME = "lifetime-policy"
SUPPORTED = "supported-dist-modes"
MODES = ("move", "copy")  # section 3.5.7

# (waits for all links, waits for all messages); each waits for the link that it was made for.
POLICIES = {
    "delete-on-close": (False, False),
    "delete-on-no-links": (True, False),
    "delete-on-no-messages": (False, True),
    "delete-on-no-links-or-messages": (True, True),
}
DEFAULT = "delete-on-close"


class Dynamic:
    """The dynamic nodes of one connection: queue name -> (link, policy)."""

    def __init__(self, protocol):
        self.protocol = protocol
        self.nodes: "dict" = {}
        self.waits = False  # some wait for messages alone, or for links of others

    def add(self, link, queue, policy):
        """Add a queue that was made for a link; `policy`: one of POLICIES. Returns its properties, for our attach."""
        self.nodes[queue] = (link, POLICIES[policy])
        return {
            ("symbol", LIFETIME): composites.described(policy, {}),
            ("symbol", SUPPORTED): ("array", "symbol", list(MODES)),
        }

    def link_ended(self, link):
        """Delete nodes that have waited for the end of a link; false: not all of them yet."""
        return self.look() if self.nodes else True

    def look(self):
        """Delete the nodes whose policy says so; false: some deletions continue in the connection's next turn."""
        gone = True
        self.waits = False
        for queue in list(self.nodes):
            if queue not in self.protocol.broker.queues:
                del self.nodes[queue]
            elif not self.is_needed(queue):
                if nodes.close(self.protocol.broker, self.protocol.connection, queue, True):
                    del self.nodes[queue]
                else:
                    gone = False
            else:
                self.waits = True
        return gone

    def is_needed(self, name):
        """True while a node has a link or a message for which its policy keeps it."""
        link, (for_links, for_messages) = self.nodes[name]
        queue = self.protocol.broker.queues[name]
        if link.state == "attached":
            return True
        if for_links and (queue.consumers or self.has_senders(name)):
            return True
        return for_messages and queue.message_count() + queue.unsettled_count() > 0

    def has_senders(self, queue):
        """True when a link of any connection has the node as its target."""
        for connection in self.protocol.broker.connections:
            if isinstance(connection.session, type(self.protocol)):
                for link in connection.session.links.values():
                    if link.route == ("", queue.encode("utf-8")):
                        return True
        return False


def asked(given):
    """Which of POLICIES a terminus asks for by its dynamic-node-properties; these are ignored where it is not dynamic.
    `given`: its fields. Raises LinkError for properties that no node can have."""
    properties = given["dynamic-node-properties"] if given["dynamic"] else None
    if properties is None:
        return DEFAULT
    modes = value_of(properties, SUPPORTED)
    if modes is not None:
        values = modes[2] if isinstance(modes, tuple) and modes[:2] == ("array", "symbol") else [modes[1]] if is_symbol(modes) else None
        if not values or [mode for mode in values if mode not in MODES]:
            raise LinkError(INVALID_FIELD, "supported-dist-modes are one or more of the symbols move and copy (section 3.5.9)")
    policy = value_of(properties, LIFETIME)
    if policy is None:
        return DEFAULT
    pair: "Any" = composites.composite(policy)
    if pair is None or pair[0] not in POLICIES:
        raise LinkError(INVALID_FIELD, "a lifetime-policy that is none (section 3.5.9)")
    return pair[0]


def value_of(properties, name):
    """The value of a node property; clients write the key as a string, too."""
    return properties.get(("symbol", name), properties.get(name))


def is_symbol(value):
    """True for a symbol."""
    return isinstance(value, tuple) and value[0] == "symbol"
