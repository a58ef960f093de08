"""Contents of unknown size, of all sessions: their blocks are reserved as they come, and never so that two contents wait for each other.

Together they have at most half of the arena, so that contents of known size, whose room is reserved when they begin, can always be
completed. In that half the oldest content has enough blocks reserved for the largest size allowed; the others grow into the rest. So the
oldest content never waits for another one; when it ends, the next one is the oldest. A session has one of them at a time.
"""

from ..errors import CONTENT_TOO_LARGE, RESOURCE_ERROR, ProtocolError
from ..memory import layout

ROUTE_SIZE_MAX = 512


class Growing:
    """The contents of unknown size of one broker."""

    def __init__(self, broker):
        self.broker = broker
        self.contents = []  # Incoming, the oldest first
        limits, tables = broker.limits, broker.tables
        self.most = limits.arena_size // limits.block_size // 2  # blocks of all of them
        # Blocks of one:
        self.largest = min(self.most, tables.blocks_for(limits.content_size_max + limits.properties_size_max + ROUTE_SIZE_MAX))

    def blocks_of(self, content):
        """The blocks of a content so far."""
        return self.broker.tables.messages[content.message + layout.MESSAGE_BLOCKS]

    def may_have(self, content, blocks):
        """True when a content may have so many blocks more without taking the reserve of the oldest."""
        used = sum([self.blocks_of(each) for each in self.contents])
        if self.contents and self.contents[0] is not content:
            used += self.largest - self.blocks_of(self.contents[0])
        return used + blocks <= self.most

    def may_begin(self, content, blocks):
        """True when one that needs so many blocks for its properties may begin. Raises resource-error when its session has another one."""
        for each in self.contents:
            if each.sender is content.sender:
                raise ProtocolError(RESOURCE_ERROR, "another content of unknown size of this session is under way")
        return self.may_have(content, blocks)

    def grow(self, content, size):
        """Reserve room for `size` octets more; false: there is none now. Raises content-too-large."""
        broker = self.broker
        tables, message = broker.tables, content.message
        messages = tables.messages
        body = messages[message + layout.MESSAGE_BODY] + size
        whole = tables.blocks_for(tables.size_of(message) + size)
        if body > broker.limits.content_size_max or whole > self.largest:
            most = min(broker.limits.content_size_max, self.largest * tables.block_size)
            raise ProtocolError(CONTENT_TOO_LARGE, "a body of unknown size has come to %d octets; this broker takes %d" % (body, most))
        blocks = whole - self.blocks_of(content)
        if not self.may_have(content, blocks):
            return False
        if tables.state[layout.POOL_BLOCKS + 2] < blocks:
            broker.make_room(blocks)
            if tables.state[layout.POOL_BLOCKS + 2] < blocks:
                return False
        tables.state[layout.POOL_BLOCKS + 2] -= blocks
        messages[message + layout.MESSAGE_BLOCKS] += blocks
        messages[message + layout.MESSAGE_BODY] = body
        return True
