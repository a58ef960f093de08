"""Contents of an earlier run: what of them is good in the store."""

import json
import struct

from ..log.segments import Reader
from ..memory import layout
from . import stored
from .content import OPENED, OVERHEAD, PART, PART_SIZE, REFERRED, VERSION, WHOLE, Content, Piece


def recover(contents):
    """Read all that the store of Contents has: a sentence for the operator, "" where there is nothing."""
    pieces_by_token: "dict" = {}  # token -> [(said, Piece, end or None)]
    store = contents.store
    for number in store.numbers():
        contents.numbers = max(contents.numbers, number)
        said, piece, end = read_piece(store, number)
        if said is None:
            contents.removing.append(number)
        elif said["version"] == VERSION:  # one of another version is left alone
            pieces_by_token.setdefault(said["token"], []).append((said, piece, end))
    for pieces in pieces_by_token.values():
        put_together(contents, pieces)
    tokens = contents.tokens()
    if not contents.by_token and not tokens:
        return ""
    hold_queues(contents, tokens)
    whole = [each for each in contents.by_token.values() if each.is_whole]
    sentence = "%d staged contents of %d octets, %d of them whole" % (
        len(contents.by_token),
        sum([each.staged() for each in contents.by_token.values()]),
        len(whole),
    )
    lost = len(tokens) - len([each for each in whole if each.token in tokens])
    return sentence + ("; %d that messages refer to are lost" % lost if lost else "")


def read_piece(store, number):
    """(what the first record says or None, Piece, payload of the last record or None) of a number of the store."""
    reader = Reader(store, number, 0)
    piece, said, end = Piece(number, 0, 0), None, None
    piece.is_open = False
    record = reader.next()
    while record is not None:
        type_, payload = record
        if said is None:
            if type_ != OPENED:
                break
            said = json.loads(str(payload, "utf-8"))
            piece.start, piece.first = said["start"], OVERHEAD + len(payload)
        elif type_ == PART and piece.octets % PART_SIZE == 0 and end is None:
            piece.octets += len(payload)
        elif type_ == WHOLE:
            end = payload
        elif type_ == REFERRED:
            piece.is_referred = True
        piece.records += 1
        record = reader.next()
    if reader.damage is not None:
        piece.records = 0  # nothing is written behind it
    return said, piece, end


def put_together(contents, pieces):
    """Make a Content out of its pieces, as far as they follow each other."""
    pieces.sort(key=lambda each: (each[1].start, each[1].number))
    said = pieces[0][0]
    content = Content(said["user"], said["identifier"], said["size"], said["token"])
    for _, piece, end in pieces:
        if piece.start > content.written():
            contents.removing.append(piece.number)
            continue
        for before in content.pieces:
            before.octets = min(before.octets, max(piece.start - before.start, 0))
        content.pieces.append(piece)
        if end is not None and content.written() == content.size:
            content.kind, content.properties = struct.unpack(">i", end[:4])[0], end[4:]
            content.is_whole = True
            content.referred = content.is_marked = piece.is_referred
    if not content.pieces:
        return  # it was being removed
    content.touched = contents.broker.uptime_s
    contents.by_key[content.user, content.identifier] = contents.by_token[content.token] = content


def hold_queues(contents, tokens):
    """Note which queues have messages that refer to contents; `tokens`: of all such messages in memory."""
    broker, tables = contents.broker, contents.broker.tables
    for token in tokens:
        if token in contents.by_token:
            contents.by_token[token].referred = True
    messages = dict.fromkeys(stored.all_in(tables), True)
    entries = tables.entries
    for entry in range(0, len(entries) - layout.ENTRY_WIDTH + 1, layout.ENTRY_WIDTH):
        if entries[entry + layout.ENTRY_MESSAGE] in messages:  # ready, or held by a prepared branch; a free record holds a queue too many
            queue = broker.queue_objects.get(entries[entry + layout.ENTRY_QUEUE])
            if queue is not None and not queue.is_stream:
                contents.hold(queue)
    for queue in broker.queues.values():
        if not queue.is_stream and queue.is_paging():
            contents.hold(queue)
            for content in contents.by_token.values():
                content.referred = content.referred or content.is_whole
                contents.came_to(content.token, queue)  # one that is in the log alone has a place before the next one
