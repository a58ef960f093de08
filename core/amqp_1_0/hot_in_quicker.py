"""CPython's own forms of what hot_in.py reads of a transfer and of its message's sections. No board carries this file.

Each function does what the one of its name there says, for an interpreter to which each look at an octet costs as much as a whole call in
C: heads by a call of struct, the fields behind a delivery-tag and the sections as bytes. tests/accel/test_quicker.py holds the forms
together.
"""

from struct import Struct

from ..broker.publish import find_route, settle_all
from ..memory.hot import activate
from ..memory.hot_quicker import store
from ..memory.layout import *
from ..shim import pattern
from .hot_in import header_end, ingest_disposition, ingest_transfer
from .hot_in import settle_range as plain_settle_range
from .link_layout import *

if False:  # for the type checker alone
    from typing import Any

_uint = Struct(">I").unpack_from
_frame = Struct(">IHHHB").unpack_from  # size, doff and type, channel; the constructor of a descriptor, its code
_section = Struct(">IB").unpack_from  # 0 0x53 code constructor, size
_NEAR = 64
_FORMAT = 2  # formats.AMQP_1_0
_TAG_MAX = 32
_STRINGS = 0x143D  # places of properties (section 3.2.4) that may be a string, as bits
_ASCII = bytes(range(128))
_KNOWN_MAX = 64
_tests: dict = {}  # count of fields of properties, or _PAIR -> see _is_usual; each takes milliseconds to be made, and there are 15 at most
_looks: dict = {}  # form of struct -> its function
_known: dict = {}  # the octets behind a delivery-tag -> 1 settled, 0 not settled, -1 they are not as usual

# Octets of a value by its constructor; 0: it has a size of its own in the next octet, 255: it is for sections.py.
_SCALARS = bytearray([255] * 256)
for _codes, _size in ((range(0x40, 0x45), 1), (range(0x50, 0x56), 2), ((0x70, 0x71), 5), (range(0x80, 0x84), 9), ((0x60, 0x61), 3)):
    for _code in _codes:
        _SCALARS[_code] = _size
_SCALARS[0x98] = 17
_SCALARS[0xA0] = 0
_PROPERTIES, _APPLICATION = 0x5373C0, 0x5374C1  # heads of sections, of up to 255 octets
_TEXT_MAX = 63  # octets of texts in _is_usual: a pattern takes time to be made
_PAIR = -1
_IDENTITIES = {0x53: 2, 0x80: 9, 0x98: 17, 0x44: 1}
_WHOLES = {0x43: 1, 0x52: 2, 0x70: 5}


def ingest(arena, blocks, messages, entries, queues, channels, consumers, state, routes, route_octets, route_targets, link, way, source):
    """See hot_in.ingest."""
    end = state[STATE_END]
    at = state[STATE_AT]
    near = state[STATE_SIZE] - 11 - _NEAR
    size_max = min(state[STATE_FRAME_MAX], state[STATE_SIZE])
    channel = link[LINK_CHANNEL]
    link[LINK_SLOT] = -1
    while True:
        if end - at < 11:
            return INCOMPLETE if end - at < 8 else ASK
        if state[STATE_LEFT] <= 0:
            return TURN_OVER
        size, kind, number, constructor, code = _frame(source, at)
        if size < 14 or size > size_max or kind != 0x200 or number != channel:
            return ASK
        if end - at < size:
            return INCOMPLETE
        if constructor != 0x53 or at > near:
            return ASK
        if code == 0x14:
            if run(
                arena,
                blocks,
                messages,
                entries,
                queues,
                channels,
                state,
                routes,
                route_octets,
                route_targets,
                link,
                way,
                source,
                size_max,
                near,
            ):
                at = state[STATE_AT]
                continue
            answer = ingest_transfer(
                arena, blocks, messages, entries, queues, channels, state, routes, route_octets, route_targets, link, way, source, at + size
            )
        elif code == 0x15:
            answer = ingest_disposition(blocks, messages, entries, queues, channels, consumers, state, link, source, at + size)
        else:
            return ASK
        if answer < 0:
            return answer
        at += size
        state[STATE_AT] = at
        state[STATE_LEFT] -= 1


def run(arena, blocks, messages, entries, queues, channels, state, routes, route_octets, route_targets, link, way, source, size_max, near):
    """Take transfers of the link from state[AT] on, as hot_in.ingest_transfer does, as long as they go to one queue that asks for nothing:
    how many."""
    slot = link[LINK_SLOT]
    if slot < 0:
        slot = find_route(state, routes, route_octets, way, 0, link[LINK_ROUTE])
        if slot < 0:
            return 0
        link[LINK_SLOT] = slot
    queue = route_targets[routes[slot + ROUTE_TARGETS]]
    plain = queues[queue + QUEUE_PLAIN]
    if routes[slot + ROUTE_COUNT] != 1 or plain != PLAIN and plain != PLAIN_LOGGED or queues[queue + QUEUE_LIMITS]:
        return 0
    if link[LINK_HANDLE] < 0 or channels[link[LINK_RECORD] + CHANNEL_CONFIRM]:
        return 0
    route = bytes(way[: link[LINK_ROUTE]])
    rows, at = usual(state, queues, queue, link, source, size_max, near, route)
    count = len(rows)
    if not count:
        return 0
    store(arena, blocks, messages, entries, queues, state, queue, rows)
    activate(queues, state, queue)
    state[STATE_PUBLISHED] = (state[STATE_PUBLISHED] + count) & MASK
    state[STATE_ALTERNATE] += count * routes[slot + ROUTE_ALTERNATES]
    state[STATE_LEFT] -= 2 * count  # a frame, and a place in a queue
    state[STATE_AT] = at
    link[LINK_TAKEN] += count
    link[LINK_CREDIT] -= count
    return count


def usual(state, queues, queue, link, source, size_max, near, route):
    """The transfers from state[AT] on that the queue takes unread, up to the first that is for ingest_transfer: what hot_quicker.store
    wants of each, and where they end.

    Those behind the first mostly have its octets but for the size, the delivery-id and the tag: one call of struct reads what differs.
    """
    settles, plain, content_max, properties_max = link[LINK_SETTLES], queues[queue + QUEUE_PLAIN], state[STATE_CONTENT_MAX], 0
    properties_max, block_size, route_size = state[STATE_PROPERTIES_MAX], state[STATE_BLOCK_SIZE], len(route)
    settled = link[LINK_IS_SETTLED] if link[LINK_TAKEN] else None
    at, end_of_all = state[STATE_AT], state[STATE_END]
    most = min(link[LINK_CREDIT], (state[STATE_LEFT] + 1) // 2)  # of a turn: a frame, and a place in a queue
    while most > 0 and not has_room(state, queues, queue, most, min(end_of_all - at, most * size_max) + most * route_size):
        most //= 2
    rows: list = []
    number, start, last_at = 0, 0, -1
    look: "Any" = None
    head = tag = fields = None
    while len(rows) < most:
        if at <= last_at:
            size, head_read, number_read, tag_read, fields_read, section, octets = look(source, at)
        if at > last_at or head_read != head or tag_read != tag or fields_read != fields or number_read != number or size < start + 5:
            if rows:
                expect(link, number)
            first: "Any" = first_of(link, source, at, end_of_all) if at <= near else None
            if first is None:
                break
            number, size, start, is_settled, look, head, tag, fields = first
            if is_settled != settles and settles != 2 or settled is not None and is_settled != settled:
                break
            section, octets = _section(source, at + start)
            last_at = -1 if look is None else min(near, end_of_all - start - 5)
        end = at + size
        if size > size_max or end > end_of_all:
            break
        behind = at + start
        kind = _FORMAT
        if section == 0x5375A0:
            here = behind + 5
            wanted = octets
        elif section == 0x5375B0 and end - behind >= 8:
            here = behind + 8
            wanted = _uint(source, behind + 4)[0]
        else:
            here = body_of(state, link, source, behind, end)
            kind = state[STATE_KIND]
            if here < 0 or state[STATE_LIFETIME] != -1 or plain != PLAIN and kind & KIND_DURABLE:
                break
            wanted = end - here
        if wanted != end - here or here - behind > properties_max or wanted > content_max:
            break
        content = route + source[behind:end]
        rows.append((content, route_size, here - behind, wanted, kind, (len(content) + block_size - 1) // block_size))
        number = number + 1 & 0xFFFFFFFF
        settled = is_settled
        at = end
    if rows:
        expect(link, number)
        link[LINK_IS_SETTLED] = settled
    return rows, at


def expect(link, number):
    """The delivery-id that comes next is known."""
    link[LINK_NEXT], link[LINK_NEXT_HIGH], link[LINK_IS_NEXT] = number & MASK, number >> 30, 1


def has_room(state, queues, queue, count, octets):
    """True where that many messages of so many octets altogether surely have room, and leave the queue within its share: publish.may_push
    would take each of them."""
    block_total = octets // state[STATE_BLOCK_SIZE] + count
    blocks_left = state[POOL_BLOCKS + 2] - block_total
    left = min(state[POOL_MESSAGES + 2] - 1, state[POOL_ENTRIES + 2]) - count
    if blocks_left < 0 or left < 0 or queues[queue + QUEUE_BLOCKS] + 2 * block_total > 4 * blocks_left:
        return False
    return queues[queue + QUEUE_LENGTH] + queues[queue + QUEUE_UNSETTLED] + count <= 4 * left


def first_of(link, source, at, end_of_all):
    """The first of some transfers that are alike: (delivery-id, octets of the frame, where behind `at` its message begins, 1 settled or 0),
    and behind these how the others are read: (a function of struct, the head up to the delivery-id, constructor and size of the tag, the
    fields behind that). There is no function where the delivery-id is a short one: those that come soon are longer. None: the frame is
    not whole, or not as usual."""
    if end_of_all - at < 11:
        return None
    size, kind, channel, constructor, code = _frame(source, at)
    start = 13 + source[at + 12]
    if code != 0x14 or constructor != 0x53 or kind != 0x200 or channel != link[LINK_CHANNEL] or source[at + 11] != 0xC0 or start + 5 > size:
        return None
    is_settled = transfer_fields(link, source, at + 14, at + start) if at + size <= end_of_all else -1
    if is_settled < 0:
        return None
    given = link[LINK_NUMBER_HIGH] << 30 | link[LINK_NUMBER], size, start, is_settled
    place = 15 if source[at + 14] == 0x43 else 16  # of the delivery-id, behind the handle
    if source[at + place] != 0x70:
        return given + (None, None, None, None)
    tag = source[at + place + 6]
    octets = bytes(source[at : at + start])
    return given + (_look(place, tag, start), octets[4 : place + 1], 0xA000 | tag, octets[place + 7 + tag :])


def _look(place, tag, start):
    """A function of struct: size, head, delivery-id, head of the tag, fields behind that; head of the first section, the octet behind."""
    form = ">I%dsIH%dx%dsIB" % (place - 3, tag, start - place - 7 - tag)
    if form not in _looks:
        if len(_looks) >= _KNOWN_MAX:
            _looks.clear()
        _looks[form] = Struct(form).unpack_from
    return _looks[form]


def settle_range(blocks, messages, entries, queues, channels, consumers, state, link, low, high):
    """See hot_in.settle_range. A range of several begins with the oldest delivery: the last one is looked for from there on, through those
    that are settled with it."""
    channel = link[LINK_RECORD]
    last = link[LINK_NUMBER]
    oldest = channels[channel + CHANNEL_UNSETTLED_HEAD]
    count = (last - low) & MASK
    if count == 0 or count >= 256 or oldest < 0 or entries[oldest + ENTRY_TAG] != low:
        return plain_settle_range(blocks, messages, entries, queues, channels, consumers, state, link, low, high)
    back = (channels[channel + CHANNEL_TAG] - last) & MASK
    here = channels[channel + CHANNEL_TAG_HIGH]
    if last > channels[channel + CHANNEL_TAG]:
        here -= 1
    wrong = (here ^ link[LINK_NUMBER_HIGH]) & 3
    if low > last:
        here -= 1
    if wrong or (here ^ high) & 3 or back + count >= 0x20000000 or count >= state[STATE_LEFT]:
        return ASK
    newest = oldest
    for _ in range(count):
        newest = entries[newest + ENTRY_NEXT]
        if newest < 0:
            return ASK
        if entries[newest + ENTRY_TAG] == last:
            break
    else:
        return ASK
    if settle_all(blocks, messages, entries, queues, channels, consumers, state, channel, oldest, newest, 0) == 0:
        return ASK
    state[STATE_LEFT] -= count
    return 0


def body_of(state, link, source, at, end):
    """See hot_in.body_of."""
    last = 0
    state[STATE_KIND] = _FORMAT
    state[STATE_LIFETIME] = -1
    while end - at > 4:
        head, size = _section(source, at)
        if head == _PROPERTIES or head == _APPLICATION:
            behind = at + 5 + size
            code = head >> 8 & 255
            if last < code and behind + 5 <= end and _is_usual(code, source[at + 5], source, at + 6, behind):
                at = behind
                last = code
                continue
        code = head >> 8 & 255
        form = head & 255
        if head >> 16 != 0x53 or code <= last:
            return ASK
        if code == 0x75:
            if form == 0xA0:
                return at + 5 if size == end - at - 5 else ASK
            return at + 8 if form == 0xB0 and end - at >= 8 and _uint(source, at + 4)[0] == end - at - 8 else ASK
        if form == 0x45:
            left = 0
            behind = at + 4
            at = behind
        elif form & 0xFE == 0xC0 and end - at > 5:
            left = source[at + 5]
            behind = at + 5 + size
            at += 6
        elif form & 0xFE == 0xD0 and end - at > 12:
            left = _uint(source, at + 8)[0]
            behind = at + 8 + _uint(source, at + 4)[0]
            at += 12
        else:
            return ASK
        if behind + 5 > end:
            return ASK
        is_map = form & 1 and form != 0x45
        if code == 0x73 and not is_map:
            at = properties_end(state, source, at, behind, left)
        elif code == 0x74 and is_map:
            at = application_end(link, source, at, behind, left)
        elif code == 0x70 and not is_map:
            at = header_end(state, source, at, behind, left)
        else:
            return ASK
        if at != behind:
            return ASK
        last = code
    return ASK


def _sized(code, octet, most):
    """A pattern of a value that is a size of up to `most` and as many octets, each as the pattern `octet`."""
    sizes = [b"\\x%02x" % size + octet + b"{%d}" % size for size in range(most + 1)]
    return code + b"(?:" + b"|".join(sizes) + b")"


_STRING, _SYMBOL = _sized(rb"\xa1", rb"[\0-\x7f]", _TEXT_MAX), _sized(rb"\xa3", rb"[\0-\x7f]", _TEXT_MAX)
_BINARY = _sized(rb"\xa0", b".", 16)
_NO, _STRING_OR_NULL, _SYMBOLS = (rb"\x40",), (b"(?:" + _STRING + rb"|\x40)",), (b"(?:" + _SYMBOL + rb"|\x40)",)
_ID = (b"(?:" + _STRING + rb"|[\x40\x44]|\x53.|\x80.{8}|\x98.{16}|" + _BINARY + b")",)
_TIME, _WHOLE = (rb"(?:\x40|\x83.{8})",), (rb"(?:[\x40\x43]|\x52.|\x70.{4})",)
_FIELDS = (
    _ID + _NO + 3 * _STRING_OR_NULL + _ID + 2 * _SYMBOLS + _NO + _TIME + _STRING_OR_NULL + _WHOLE + _STRING_OR_NULL
)  # of section 3.2.4, in order
_SCALAR = rb"[\x40-\x44]|[\x50-\x55].|[\x60\x61]..|[\x70\x71].{4}|[\x80-\x83].{8}|\x98.{16}"
_VALUE = b"(?:" + b"|".join([_STRING, _SYMBOL, _BINARY, _SCALAR]) + b")"


def _is_usual(code, count, source, at, end):
    """Whether source[at:end] has `count` fields of properties (`code` 0x73), or values of application-properties (0x74), which
    properties_end or application_end takes: texts are ASCII, keys differ. It is true of none that these do not take, and not of all that
    they take: of none with a long text."""
    if code == 0x73:
        if count > len(_FIELDS):
            return False
        if count not in _tests:
            _tests[count] = pattern(b"".join(_FIELDS[:count])).fullmatch
        return _tests[count](source, at, end)
    if code != 0x74 or count & 1 or count > 2 * KEYS_MAX:
        return False
    if _PAIR not in _tests:
        _tests[_PAIR] = pattern(rb"\xa1(" + _STRING[4:] + b")" + _VALUE + b"|.").findall
    keys = _tests[_PAIR](source, at, end)  # each with its size in front; b"" for an octet that belongs to no pair
    return 2 * len(keys) == count and len(set(keys)) == len(keys) and b"" not in keys


def _settled(octets):
    """What the fields behind a delivery-tag say, and remember it: see hot_in.transfer_fields."""
    settled = 0
    for place, code in enumerate(octets):  # message-format, settled, more, rcv-settle-mode, state, resume, aborted, batchable
        if place == 1 and code == 0x41:
            settled = 1
        elif code != 0x40 and (code != 0x43 if place == 0 else code != 0x42 and (code != 0x41 or place != 7) or place == 3 or place == 4):
            settled = -1
            break
    if len(_known) >= _KNOWN_MAX:
        _known.clear()
    _known[octets] = settled
    return settled


def transfer_fields(link, source, at, behind):
    """See hot_in.transfer_fields."""
    left = source[at - 1] - 3
    if left < 0 or left > 8:
        return -1
    code = source[at]
    if code == 0x43 and link[LINK_HANDLE] == 0:
        at += 1
    elif code == 0x52 and source[at + 1] == link[LINK_HANDLE]:
        at += 2
    else:
        return -1
    code = source[at]
    if code == 0x70:
        number = _uint(source, at + 1)[0]
        at += 5
    elif code == 0x52:
        number = source[at + 1]
        at += 2
    elif code == 0x43:
        number = 0
        at += 1
    else:
        return -1
    low = number & MASK
    link[LINK_NUMBER] = low
    link[LINK_NUMBER_HIGH] = number >> 30
    size = source[at + 1]
    if source[at] != 0xA0 or size > _TAG_MAX:
        return -1
    if link[LINK_IS_NEXT] and (low != link[LINK_NEXT] or number >> 30 != link[LINK_NEXT_HIGH]):
        return -1
    at += 2 + size
    if at + left != behind:
        return -1
    octets = bytes(source[at:behind])
    return _known[octets] if octets in _known else _settled(octets)


def properties_end(state, source, at, end, left):
    """See hot_in.properties_end."""
    octets = bytes(source[at:end])
    size_all = end - at
    here = 0
    high = 0  # octets above 127 that are no text's
    if left > 13:
        return -1
    for place in range(left):
        if here >= size_all:
            return -1
        code = octets[here]
        if code == 0x40:
            here += 1
            continue
        if code == 0xA1 or code == 0xA3:
            if code == 0xA1 and _STRINGS >> place & 1 == 0 or code == 0xA3 and place != 6 and place != 7 or here + 1 >= size_all:
                return -1
            size = octets[here + 1]
            high += 1 + (size >> 7)
            here += 2 + size
            continue
        size = -1
        if place == 0 or place == 5:  # message-id, correlation-id
            size = _IDENTITIES.get(code, -1)
            if code == 0xA0 and here + 1 < size_all:
                size = 2 + octets[here + 1]
        elif place == 11:  # group-sequence
            size = _WHOLES.get(code, -1)
        elif code == 0x83 and (place == 9 or place == 8 and state[STATE_LIFETIME] >= 0):
            size = 9
        if size < 0 or here + size > size_all:
            return -1
        high += len(octets[here : here + size].translate(None, _ASCII))
        here += size
    return end if here == size_all and len(octets.translate(None, _ASCII)) == high else -1


def application_end(link, source, at, end, left):
    """See hot_in.application_end."""
    if left & 1 or left > 2 * KEYS_MAX:
        return -1
    octets = bytes(source[at:end])
    size_all = end - at
    here = 0
    high = 0  # octets above 127 that are no text's
    keys = set()
    count = left >> 1
    for _ in range(count):
        if here + 1 >= size_all or octets[here] != 0xA1:
            return -1
        size = octets[here + 1]
        start = here + 2
        here = start + size
        if here >= size_all:
            return -1
        high += 1 + (size >> 7)
        keys.add(octets[start:here])
        code = octets[here]
        if code == 0xA1 or code == 0xA3:
            if here + 1 >= size_all:
                return -1
            size = octets[here + 1]
            high += 1 + (size >> 7)
            here += 2 + size
            continue
        size = _SCALARS[code]
        if size == 0 and here + 1 < size_all:
            size = 2 + octets[here + 1]
        if size == 255 and code != 0xA0 or size == 0 or here + size > size_all:
            return -1
        if size > 1:
            high += len(octets[here : here + size].translate(None, _ASCII))
        here += size
    if len(keys) != count or here != size_all:
        return -1
    return end if len(octets.translate(None, _ASCII)) == high else -1
