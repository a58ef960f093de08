"""Every method of the two drafts of 2005, one after the other: what only a server sends is refused (503), all else has its answer. METHODS
leads; what no row of OTHERS says has arguments of zeros, and is answered by the first of its replies in the tables.

Each on a fresh connection with channel 1 open, a ticket with all rights but exclusive, and a queue q that amq.direct knows by k.
"""

from draft_peer import Peer9a5, Peer9r1, bits, long, longlong, octet, short, word

from leveret.core.amqp_0_9 import method
from leveret.core.amqp_0_9.drafts import spec_0_9a5, spec_0_9r1

DRAFTS = ((Peer9a5, spec_0_9a5), (Peer9r1, spec_0_9r1))
CLOSE, CHANNEL_CLOSE = "connection_close", "channel_close"
Q = short("q")
NAMED = short("") + Q  # a namespace and a name

# method: (its arguments, None: zeros; the name of the method that comes back, None: none does; the reply code of a close)
OTHERS = {
    "connection_start_ok": (None, CLOSE, 507),  # a connection is opened once
    "connection_secure_ok": (None, CLOSE, 507),
    "connection_tune_ok": (None, CLOSE, 507),
    "connection_open": (None, CLOSE, 507),
    "connection_unknown": (None, None, 0),
    "connection_close_ok": (None, CLOSE, 504),
    "channel_open": (None, CLOSE, 504),
    "channel_flow": (None, None, 0),
    "channel_close_ok": (None, CLOSE, 504),
    "basic_publish": (None, None, 0),  # its content has not come
    "jms_publish": (None, None, 0),
    "stream_publish": (None, None, 0),
    "jms_ack": (None, CHANNEL_CLOSE, 507),
    "jms_reject": (None, CHANNEL_CLOSE, 507),
    "file_ack": (None, CHANNEL_CLOSE, 507),
    "file_reject": (None, CHANNEL_CLOSE, 507),
    "file_open": (short("id") + longlong(5), "file_open_ok", 0),
    "file_open_ok": (None, CLOSE, 503),  # nothing was opened
    "file_stage": (None, CLOSE, 503),
    "file_publish": (None, CHANNEL_CLOSE, 404),  # nothing was staged
    "tx_commit": (None, CHANNEL_CLOSE, 507),
    "tx_abort": (None, CHANNEL_CLOSE, 507),
    "tx_rollback": (None, CHANNEL_CLOSE, 507),
    "dtx_select": (None, CLOSE, 540),  # no method of its class ends a transaction
    "dtx_start": (None, CLOSE, 540),
    "test_integer": (octet(1) + word(1) + long(1) + longlong(1) + octet(1), "test_integer_ok", 0),
    "test_table": (long(0) + octet(1) + octet(1), "test_table_ok", 0),
    "test_content": (None, CLOSE, 540),
    "test_integer_ok": (None, CLOSE, 540),  # the broker asks nothing
    "test_string_ok": (None, CLOSE, 540),
    "test_table_ok": (None, CLOSE, 540),
    "test_content_ok": (None, CLOSE, 540),
}
# What differs of 0.9a5, and of 0.9r1.
OWN = {
    Peer9a5: {
        "connection_start_ok": (None, CLOSE, 503),
        "channel_open": (long(0) + short("") + octet(1), CLOSE, 504),
        "access_grant": (short("/data") + bits(0, 0, 0, 0, 1), "access_grant_ok", 0),
        "exchange_assert": (word(1) + short("e") + short("destination") + bits(0, 0, 0), "exchange_assert_ok", 0),
        "exchange_delete": (word(1) + short("amq.direct") + bits(0), CHANNEL_CLOSE, 403),
        "queue_register": (word(1) + NAMED + short("amq.direct") + long(0), "queue_register_ok", 0),
        "basic_browse": (word(1) + NAMED + bits(0), "basic_browse_empty", 0),
        "jms_browse": (word(1) + NAMED + bits(0, 0), "jms_browse_empty", 0),
        "test_string": (short("a") + word(1) + b"b" + octet(1), "test_string_ok", 0),
    },
    Peer9r1: {
        "access_request": (short("/data") + bits(0, 0, 0, 0, 1), "access_request_ok", 0),
        "exchange_declare": (word(1) + short("e") + short("direct") + bits(0, 0, 0, 0), "exchange_declare_ok", 0),
        "exchange_delete": (word(1) + short("amq.direct") + bits(0), CHANNEL_CLOSE, 403),
        "queue_bind": (word(1) + Q + short("amq.direct") + short("k") + long(0), "queue_bind_ok", 0),
        "basic_get": (word(1) + Q, "basic_get_empty", 0),
        "jms_get": (word(1) + Q + bits(0), "jms_get_empty", 0),
        "test_string": (short("a") + long(1) + b"b" + octet(1), "test_string_ok", 0),
    },
}


def zeros(peer, codes):
    """Arguments of zeros, with the ticket in place of the first short; a queue's name that is empty is the last one's."""
    octets, bit = b"", False
    for code in codes:
        if code == "b":
            octets += b"" if bit else b"\x00"
        elif code == "s" and not octets:
            octets = peer.ticket
        else:
            sizes = {"o": 1, "s": 2, "l": 4, "L": 8, "S": 1, "F": 4, "T": 2 if isinstance(peer, Peer9a5) else 4}
            octets += bytes(sizes[code])
        bit = code == "b"
    return octets


def answer(class_, spec, row):
    """(name of the method that comes back, or None; the reply code of a close, or 0)."""
    peer, name = class_().queue(), row[method.NAME]
    given, code = row_of(class_, name)[0], row[method.CODE]
    octets = zeros(peer, row[method.FIELDS]) if given is None else given
    peer.say(0 if name.startswith("connection_") else 1, code >> 16, code & 0xFFFF, octets)
    heard = peer.heard()
    assert len(heard) < 2, heard
    if not heard:
        return None, 0
    payload = heard[0][2]
    codes = {peer.ids(each[method.CODE] >> 16, each[method.CODE] & 0xFFFF): each[method.NAME] for each in spec.METHODS}
    came = codes[payload[:4]]
    return came, payload[4] << 8 | payload[5] if came.endswith("_close") else 0


def row_of(class_, name):
    return OWN[class_].get(name) or OTHERS.get(name) or (None, None, None)


def test_what_only_a_server_sends_is_refused_by_its_name():
    for class_, spec in DRAFTS:
        for row in spec.METHODS:
            if row[method.SENDER] == method.SERVER:
                assert answer(class_, spec, row) == (CLOSE, 503), row


def test_what_a_client_sends_has_its_answer():
    for class_, spec in DRAFTS:
        for row in spec.METHODS:
            if row[method.SENDER] != method.SERVER:
                came, wanted = answer(class_, spec, row), row_of(class_, row[method.NAME])[1:]
                assert came == ((row[method.REPLIES][0], 0) if wanted[1] is None else wanted), (spec.HEADER, row, came)


def test_every_row_is_of_a_method():
    names = [{row[method.NAME] for row in spec.METHODS if row[method.SENDER] != method.SERVER} for _, spec in DRAFTS]
    assert set(OTHERS) <= names[0] | names[1]
    for (class_, _), there in zip(DRAFTS, names):
        assert set(OWN[class_]) <= there
