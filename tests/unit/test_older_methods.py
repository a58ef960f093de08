"""Every method of AMQP 0-8 and 0-9, one after the other: what only a server sends is refused, all else has its answer. METHODS leads.

Each on a fresh connection with channel 1 open and a queue q, bound to amq.direct by k. What no row of OTHERS says has arguments of zeros,
and is answered by the first of its replies in the tables.
"""

from test_older import HEADERS, Old

from leveret.core.amqp_0_9 import method, spec_0_8, spec_0_9

REFUSED = "connection_close"
ZEROS = {"o": 0, "s": 0, "l": 0, "L": 0, "F": {}, "f": {}, "T": b"", "S": "", "b": False}

# method: (arguments or None for zeros, names of the methods that come back, reply code of a close)
OTHERS = {
    "connection_start_ok": (None, REFUSED, 530),  # a connection is opened once
    "connection_secure_ok": (None, REFUSED, 530),
    "connection_tune_ok": (None, REFUSED, 530),
    "connection_open": (None, REFUSED, 530),
    "connection_close_ok": (None, REFUSED, 504),
    "channel_open": (None, REFUSED, 504),
    "channel_flow_ok": (None, None, 0),
    "channel_close_ok": (None, REFUSED, 504),
    "channel_resume": (None, REFUSED, 540),
    "channel_ping": (None, REFUSED, 540),
    "channel_pong": (None, REFUSED, 540),
    "channel_ok": (None, REFUSED, 540),
    "exchange_declare": ((0, "e", "direct", False, False, False, False, False, {}), "exchange_declare_ok", 0),
    "exchange_delete": ((0, "amq.direct", False, False), "channel_close", 403),
    "exchange_bound": (("amq.direct", "k", "q"), "exchange_bound_ok", 0),
    "queue_bind": ((0, "q", "amq.direct", "other", False, {}), "queue_bind_ok", 0),
    "queue_unbind": ((0, "q", "amq.direct", "k", {}), "queue_unbind_ok", 0),
    "basic_consume": ((0, "q", "c", False, False, False, False, {}), "basic_consume_ok", 0),
    "basic_publish": (None, None, 0),  # its content has not come
    "basic_get": ((0, "q", False), "basic_get_empty", 0),
    "basic_ack": (None, "channel_close", 406),
    "basic_reject": (None, "channel_close", 406),
    "file_open": (("id", 5), "file_open_ok", 0),
    "file_open_ok": (None, REFUSED, 503),  # nothing was opened
    "file_stage": (None, REFUSED, 503),
    "file_publish": (None, "channel_close", 404),
    "file_ack": (None, "channel_close", 406),
    "file_reject": (None, "channel_close", 406),
    "stream_publish": (None, None, 0),
    "tx_commit": (None, "channel_close", 406),
    "tx_rollback": (None, "channel_close", 406),
    "dtx_select": (None, REFUSED, 540),  # no method of its class ends a transaction
    "dtx_start": (None, REFUSED, 540),
    "tunnel_request": (None, REFUSED, 540),
    "test_integer": ((1, 2, 3, 4, 1), "test_integer_ok", 0),
    "test_string": (("a", b"b", 1), "test_string_ok", 0),
    "test_table": (({}, 1, 1), "test_table_ok", 0),
    "test_content": (None, REFUSED, 540),
    "test_integer_ok": (None, REFUSED, 540),  # the broker asks nothing
    "test_string_ok": (None, REFUSED, 540),
    "test_table_ok": (None, REFUSED, 540),
    "test_content_ok": (None, REFUSED, 540),
}
# 1 1 9 1 (py-amqplib), and 0-9: basic.recover has no answer.
SILENT = (HEADERS[1], HEADERS[2])


def answer(header, spec, row):
    """(names of the methods that come back, or None; the reply code of a close, or 0) for a method of a client."""
    peer = Old(header, spec).declared()
    name = row[method.NAME]
    given = OTHERS[name][0] if name in OTHERS else None
    if given is None:
        given = [ZEROS[letter] for letter in row[method.FIELDS]]
    peer.give(method.encode(row, 0 if name.startswith("connection_") else 1, given))
    heard = peer.methods()
    assert len(heard) < 2, heard
    if not heard:
        return None, 0
    came, arguments = heard[0]
    return came, arguments[0] if came.endswith("_close") else 0


def test_what_only_a_server_sends_is_refused_by_its_name():
    for header, spec in HEADERS:
        for row in spec.METHODS:
            if row[method.SENDER] == method.SERVER:
                assert answer(header, spec, row) == (REFUSED, 503), row


def test_what_a_client_sends_has_its_answer():
    for header, spec in HEADERS:
        for row in spec.METHODS:
            name = row[method.NAME]
            if row[method.SENDER] == method.SERVER:
                continue
            came = answer(header, spec, row)
            if name == "basic_recover" and (header, spec) in SILENT:
                assert came == (None, 0), row
            elif name in OTHERS:
                assert came == OTHERS[name][1:], (spec.HEADER, row, came)
            else:
                assert came == (row[method.REPLIES][0], 0), (spec.HEADER, row, came)


def test_every_row_is_of_a_method():
    names = {row[method.NAME] for spec in (spec_0_8, spec_0_9) for row in spec.METHODS if row[method.SENDER] != method.SERVER}
    assert set(OTHERS) <= names, set(OTHERS) - names
