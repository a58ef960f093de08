"""A consumer of class file: each message is staged at its client before it is delivered (core/staging/delivering.py). One after the other
on a channel: file.stage does not say which content it has.
"""

from ..memory import layout
from ..message import reading
from ..outcomes import ACCEPTED
from ..staging import delivering, publishing
from ..staging import properties as shared
from ..staging.account import lets
from ..staging.content import Damaged
from . import deliver
from .foreign import Lead


class FileReader:
    """One of them. `window`: (octets, count) of its own, where its version has it in consume; None: the channel's (file.qos)."""

    window = None

    def __init__(self, session, channel, consumer):
        self.session = session
        self.channel = channel
        self.consumer = consumer
        self.broker = session.broker
        self.send = session.send
        self.no_ack = consumer.no_ack

    def is_closing(self):
        """True when no delivery may begin."""
        return self.channel.closing

    def has_window(self, size):
        """True when a delivery of `size` octets may be sent in advance."""
        files = self.channel.files
        if self.window is None:
            return files.has_window(size)
        return lets(self.window[1], self.window[0], [each[1] for each in files.delivered if each[2] == self.consumer.tag], size)

    def open(self, identifier, size):
        """Write file.open."""
        self.session.reply(self.channel.number, "file_open", (identifier, size))

    def hold(self, entry):
        """Hold a delivery: its tag."""
        tag = int.from_bytes(deliver.count_tag(self.broker.tables, self.channel), "big")
        self.broker.consumers.hold(self.consumer, entry)
        return tag

    def deliver(self, most, before):
        """Begin the next delivery, if there can be one now: how many."""
        return delivering.begin_next(self, self.channel.files, before)


def go_on(session, channel, files, staged):
    """The client has `staged` octets: send the rest, then the delivery; false when that must wait."""
    broker, out = session.broker, files.out
    if session.replies or session.outgoing.active():
        return False
    tables = broker.tables
    if tables.engine.find_tag(channel.handle, out.tag & layout.MASK) != out.entry:
        files.out = None  # its queue was deleted, or the client has settled it otherwise: the message is another's by now
        files.feed()
        return True
    redelivered = tables.entries[out.entry + layout.ENTRY_REDELIVERED] & 255 != 0
    exchange, key = reading.names_of(tables, out.message)
    given = shared.fields_of(publishing.properties_of(broker, out.message), True)
    given["destination"] = key  # of 0.9a5
    frames = session.encoded("file_stage", channel.number, ())
    frames += session.header_frame(channel.number, session.file_id, out.size - staged, given)
    if not session.begin_content(channel.number, out.message, frames, body_of(broker, out, staged)):
        return False
    session.write(session.file_delivery(out.made, out.tag, redelivered, exchange, key, out.identifier))
    files.out = None
    if out.made.no_ack:
        broker.consumers.settle(channel, out.entry, out.entry, ACCEPTED)
    else:
        files.delivered.append((out.tag, out.size, out.made.consumer.tag))
    files.feed()
    return True


def body_of(broker, out, staged):
    """The octets of a content from `staged` on."""
    if out.token is None:
        return Lead(broker.tables, out.message, delivering.pieces_of(broker, out.message, staged))
    return StagedLead(broker.contents, broker.contents.by_token[out.token], staged)


class StagedLead:
    """The octets of a staged content, read as they are wanted: as foreign.Lead has those of a message."""

    def __init__(self, contents, content, at):
        self.contents = contents
        self.content = content
        self.at = at

    def __len__(self):
        return self.content.size - self.at

    def __getitem__(self, part):
        if part.start is not None:
            self.at += part.start
            return self
        parts, at, left = [], self.at, part.stop
        while left:
            try:
                octets = self.contents.read(self.content, at, left)
            except (Damaged, OSError) as error:
                self.contents.broker.log("a staged content cannot be read: %s" % (error,))
                raise
            parts.append(octets)
            at += len(octets)
            left -= len(octets)
        return b"".join(parts)
