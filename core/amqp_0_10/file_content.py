"""Contents of class file as they arrive: file.stage (header and body into core/staging) and file.publish, and the properties of files.

A file's properties become those of an ordinary message, so that every receiver reads them: a header segment with delivery-properties and
message-properties. filename and cluster-id, which a message has not, are the application headers x-filename and x-cluster-id.
"""

from ..broker import crossing
from ..errors import CONTENT_TOO_LARGE, FRAME_ERROR, ProtocolError
from ..message.formats import NUMBER
from ..message.route import PART_MAX, pack
from ..staging import properties as shared
from ..staging import publishing
from ..staging.contents import contents_of
from . import frame, mapping, properties, structs, transfer
from .conditions import ILLEGAL_STATE, SessionError

FILE = "file-properties"
STREAM = "stream-properties"


# Properties


def message_header(name, payload, delivery):
    """The header segment of an ordinary message out of one with the struct `name` (bytes). `delivery`: more properties by the names that
    families share. Raises ProtocolError."""
    given: "dict" = dict(delivery)
    for title, begin, behind in structs.each_struct(payload, 0, len(payload)):
        if title == name:
            given.update(named(structs.read(name, payload, begin, behind, True)[0]))
    priority = given.get("priority")
    if priority is not None and priority > 9:
        raise SessionError("illegal-argument", "priority is %d; from 0 to 9 are (delivery-priority)" % priority)
    return properties.encode(given)


def named(fields):
    """The fields of file-properties or stream-properties by the names that families share."""
    given = shared.named(fields)
    if fields["timestamp"] is not None:
        given["timestamp"] = properties.milliseconds(fields["timestamp"]) // 1000
    return given


def header_of(name, given):
    """The header segment with the struct `name` out of properties by the names that families share: the opposite of `message_header`."""
    return structs.write(name, shared.fields_of(given, name == FILE))


# file.stage


class Stage:
    """The taker of file.stage (mapping.py)."""

    @staticmethod
    def begin(session, fields):
        """The command. Raises illegal-state without a file.open before it."""
        if session.files is None or session.files.staging is None:
            raise SessionError(ILLEGAL_STATE, "file.stage without a file.open")
        session.header = b""

    @staticmethod
    def header(session, payload, is_last):
        """The header segment is whole; `is_last`: no body follows. False: it must wait."""
        session.header = payload
        if is_last:
            return end_stage(session)
        session.wants = frame.BODY
        return True

    @staticmethod
    def body(session, octets, at, end, whole):
        """A frame of the body; `whole`: its last. False: it must wait, and is given again."""
        files = session.files
        if not files.has_last:
            contents = contents_of(session.broker)
            if not contents.append(files.staging, session, octets, at, end - at):
                return False
            session.session.content_moved = session.broker.now
        files.has_last = whole
        if whole:
            return end_stage(session)
        session.goes_on = True
        return True


def end_stage(session):
    """All of the stage has come: false while it is not durable."""
    files = session.files
    content = files.staging
    header = message_header(FILE, session.header, {"delivery_mode": properties.PERSISTENT})
    if len(header) > session.broker.limits.properties_size_max:
        raise ProtocolError(
            CONTENT_TOO_LARGE, "properties of %d octets; this broker takes %d" % (len(header), session.broker.limits.properties_size_max)
        )
    kind = properties.columns(properties.facts(header, 0, len(header)), 0)[0] | properties.NUMBER
    try:
        if not contents_of(session.broker).finish(content, session, kind, header):
            return False
    except ProtocolError:
        files.stop_staging()
        raise
    files.stop_staging()
    transfer.ended(session)
    session.took(session.id)
    session.done(session.id)
    return True


# file.publish


class Publish:
    """The taker of file.publish: no content comes with it, one that is staged is published."""

    @staticmethod
    def begin(session, fields):
        """The command."""

    @staticmethod
    def header(session, payload, is_last):
        """There is none, and the command is done: false when it must wait."""
        if not is_last:
            raise ProtocolError(FRAME_ERROR, "file.publish has no header and no body")
        fields, incoming, broker = session.fields, session.incoming, session.broker
        content = publishing.content_for(broker, session.connection.user.name, fields["identifier"] or "")
        key = (fields["routing_key"] or "").encode("utf-8")
        exchange = (fields["exchange"] or "").encode("utf-8")
        if len(key) > PART_MAX:
            raise ProtocolError(CONTENT_TOO_LARGE, "a routing key of %d octets; this broker takes %d" % (len(key), PART_MAX))
        fields["accept_mode"] = 1  # what becomes of it is told by file.return and execution.exception
        incoming.to(pack(exchange, key), fields["mandatory"])
        incoming.copies = b""
        header, kind = native(content)
        if not publishing.begin(broker, incoming, content, routed(header, exchange, key), kind):
            return False
        end_publish(session)
        publishing.ended(broker, content)
        return True

    @staticmethod
    def returned(session, message):
        """It was mandatory and has no route."""
        returned(session, message)


def native(content):
    """(header segment, kind) of a message for a content, which a client of another version may have staged."""
    if content.kind & NUMBER == properties.NUMBER:
        return content.properties, content.kind
    given = crossing.source_of(content.kind).exact(content.properties)
    (given.get("headers") or {}).pop(shared.DESTINATION, None)
    return properties.encode(given), content.kind & ~NUMBER | properties.NUMBER


def routed(header, exchange, key):
    """A header segment with the routing key, as a transfer has it."""
    return properties.rewritten(header, {"exchange": str(exchange, "utf-8"), "routing_key": str(key, "utf-8")}, {})


def end_publish(session):
    """The message of a file.publish or stream.publish is whole: publish it, unless it is to be delivered at once and nobody reads it."""
    broker, incoming, fields = session.broker, session.incoming, session.fields
    transfer.ended(session)
    if fields["immediate"] and incoming.transaction is None:
        if publishing.is_unread(broker, incoming):
            send_return(session, incoming.message, 313, "no consumer is there")
            mapping.drop_content(session)
            session.took(session.id)
            session.done(session.id)
            return
    mapping.complete(session)


def returned(session, message):
    """A message with `mandatory` has no route: file.return or stream.return tells its sender."""
    send_return(session, message, 312, "no queue takes the message")


def send_return(session, message, code, text):
    """Send the return of the class that the command under way has: with the message's header, and without its body."""
    fields = session.fields
    is_file = session.name_of == "file_publish"
    given = {"reply_code": code, "reply_text": text, "exchange": fields["exchange"] or "", "routing_key": fields["routing_key"] or ""}
    header = header_of(FILE if is_file else STREAM, publishing.properties_of(session.broker, message))
    session.command("file_return" if is_file else "stream_return", given, header)
