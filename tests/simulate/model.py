"""What a broker on a log must come back with: the naive side of the simulation.

`state_of` writes down everything durable that a broker holds, from its memory alone: for each queue in the log its definition, and which
message stands at which position (ready, unsettled or waiting); streams with their offsets; all durable definitions. The world notes it each
time that something is given to the store. After a crash the broker must be in one of the states noted since the last sync that succeeded,
that one included: nothing confirmed is missing, nothing settled and synced is back, no transaction in half, no order changed.
"""

from leveret.core.log import chunk_index, definition_records
from leveret.core.memory import layout
from leveret.core.memory.invariants import Wrong  # noqa: F401 - every part of the simulation has it from here


def body_of(message, size):
    """The body of a message: its id, and as much more as makes `size` octets."""
    name = message.encode() + b"|"
    return (name * (size // len(name) + 1))[: max(size, len(name))]


class State:
    """One moment. `queues`: name -> [(position, message id)] rising; `definitions`: texts; `pushes`: messages taken so far."""

    def __init__(self, queues, streams, definitions, pushes):
        self.queues = queues
        self.streams = streams  # (stream id, name) -> (first offset, next offset)
        self.definitions = definitions
        self.pushes = pushes

    def same(self, other):
        """True when two moments hold the same."""
        return self.queues == other.queues and self.streams == other.streams and self.definitions == other.definitions

    def difference(self, other):
        """What makes another moment differ, in words."""
        words = []
        for name in sorted(set(self.queues) | set(other.queues)):
            mine, its = self.queues.get(name), other.queues.get(name)
            if mine != its:
                if mine is None or its is None:
                    words.append("queue %s: %s" % (name, "not there" if its is None else "there"))
                else:
                    words.append(
                        "queue %s: missing %s, too many %s"
                        % (name, [each for each in mine if each not in its][:6], [each for each in its if each not in mine][:6])
                    )
        if self.streams != other.streams:
            words.append("streams %s, not %s" % (other.streams, self.streams))
        for each in self.definitions:
            if each not in other.definitions:
                words.append("missing " + each)
        for each in other.definitions:
            if each not in self.definitions:
                words.append("too many " + each)
        return "; ".join(words)


EMPTY = State({}, {}, [], 0)


def state_of(broker, ids, pushes, paged_ids):
    """The State of a broker. `ids`: message record -> message id; `paged_ids`: (queue id, position) -> message id, None: transient."""
    queues = {}
    streams = {}
    for found in broker.queues.values():
        if found.id_in_log:
            queues[found.name] = []
            if found.is_stream:
                streams[(found.id, found.name)] = (found.first_offset, found.next_offset(), sorted(found.kept.items()))
    for found, entry in places(broker):
        message = broker.tables.entries[entry + layout.ENTRY_MESSAGE]
        if broker.tables.is_durable(message) or broker.tables.messages[message + layout.MESSAGE_SEGMENT]:
            queues[found.name].append((broker.tables.entries[entry + layout.ENTRY_POSITION], ids[message]))
    for found, position in paged_places(broker):
        name = paged_ids[found.id_in_log, position]
        if name is not None:
            queues[found.name].append((position, name))
    for name in queues:
        queues[name].sort()
    return State(queues, streams, definitions_of(broker), pushes)


def paged_places(broker):
    """All (queue, position) that are in an index: what is only in the log, and all that streams have."""
    chunks = broker.tables.chunks
    for found in broker.queues.values():
        if found.pages is not None:
            chunk = found.pages.head
            holes = found.pages.holes
            while chunk != layout.NONE:
                first = broker.journal.position(found, chunks[chunk + chunk_index.POSITION])
                for position in range(first, first + chunks[chunk + chunk_index.SPAN]):
                    if holes is None or not holes.has(position):
                        yield found, position & layout.MASK
                chunk = chunks[chunk + chunk_index.NEXT]


def definitions_of(broker):
    """Every durable definition as a text, without what a stream counts up, and without the clock's jumps, which nobody defines."""
    texts = []
    for definition in [each for each in definition_records.all_definitions(broker) if each["kind"] != "clock"]:
        texts.append(text_of({name: definition[name] for name in definition if name not in ("next", "kept", "id")}))
    return sorted(texts)


def text_of(item):
    """An argument or a definition as a text that does not depend on the order of a dict."""
    if isinstance(item, dict):
        return "{" + ", ".join(["%s: %s" % (name, text_of(item[name])) for name in sorted(item)]) + "}"
    return repr(item)


def places(broker):
    """All (queue, entry) of queues in the log: ready, unsettled, waiting for a moment or for room; what streams have is in their index."""
    tables = broker.tables
    for found in broker.queues.values():
        if found.id_in_log and not found.is_stream:
            entry = found.head()
            while entry != layout.NONE:
                yield found, entry
                entry = tables.entries[entry + layout.ENTRY_NEXT]
    for channel in broker.consumers.open_sessions():
        entry = tables.channels[channel.handle + layout.CHANNEL_UNSETTLED_HEAD]
        while entry != layout.NONE:
            found = broker.queue_objects[tables.entries[entry + layout.ENTRY_QUEUE]]
            if found.id_in_log and not found.is_stream:
                yield found, entry
            entry = tables.entries[entry + layout.ENTRY_NEXT]
    for found, entry in broker.kept_aside():
        if found.id_in_log:
            yield found, entry
