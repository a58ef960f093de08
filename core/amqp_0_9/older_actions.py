"""The actions of older_states.OLDER_CHANNEL: those of states.CHANNEL (verbs.py), and how contents of the classes file and stream begin."""

from ..errors import COMMAND_INVALID, PRECONDITION_FAILED, ProtocolError
from ..message.route import pack
from ..staging import publishing
from . import content, method, verbs
from .described import described
from .verbs import (  # noqa: F401 - actions of OLDER_CHANNEL
    begin_body,
    closed,
    closed_too,
    drop_returns,
    end_content,
    header,
    ignore,
    open_channel,
    publish,
    refuse,
    request,
)


def publish_stream(session, channel, row, octets, at, end):
    """stream.publish, whose content header and body are those of basic.publish in another class."""
    _, exchange, key, mandatory, immediate = method.decode(row, octets, at, end)
    channel.to(pack(exchange.encode("utf-8"), key.encode("utf-8")), mandatory)
    channel.class_id, channel.is_immediate = session.stream_id, immediate
    session.begun += 1


def stage(session, channel, row, octets, at, end):
    """file.stage."""
    method.decode(row, octets, at, end)
    if channel.files is None or channel.files.staging is None:
        raise ProtocolError(COMMAND_INVALID, "file.stage without a file.open")
    channel.class_id = session.file_id


def stage_header(session, channel, row, octets, at, end):
    """The content header of file.stage, as one of class basic."""
    files = channel.files
    channel.body_left = int.from_bytes(bytes(octets[at + 4 : at + 12]), "big")
    files.properties = bytes(octets[at + 12 : end])
    files.kind = described(files.properties, 0)[0]
    session.begun += 1
    session.content_moved = session.broker.now
    if channel.body_left == 0:
        content.complete(session, channel)


def publish_file(session, channel, row, octets, at, end):
    """file.publish: no content comes with it, one that is staged is published; false: there is no room for it now."""
    _, exchange, key, mandatory, immediate, identifier = method.decode(row, octets, at, end)
    broker = session.broker
    staged = publishing.content_for(broker, session.user, identifier)
    properties, kind = channel.files_of().properties_of(staged)
    size_max = broker.limits.properties_size_max
    if len(properties) > size_max:
        raise ProtocolError(PRECONDITION_FAILED, "properties of %d octets; this broker takes %d" % (len(properties), size_max))
    channel.to(pack(exchange.encode("utf-8"), key.encode("utf-8")), mandatory)
    channel.copies = b""
    if not publishing.begin(broker, channel, staged, properties, kind):
        return False
    channel.class_id, channel.is_immediate, channel.file = session.file_id, immediate, staged
    session.begun += 1
    content.complete(session, channel)
    return True


def release(session, channel):
    """Release everything that a channel holds."""
    channel.let_go()
    verbs.release(session, channel)


def release_content(session, channel):
    """Release a channel whose content is incomplete."""
    channel.let_go()
    verbs.release_content(session, channel)
