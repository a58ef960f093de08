"""AMQP 0-10: each exception that the specification's commands and fields name, by its name there, and the code that it has.

EXCEPTIONS leads: a row for each `exception` element of the classes message, tx, dtx, exchange, queue, file, stream, in their order; tests
of their own have message.transfer's and that of a deleted queue. This broker raises none for arguments that it does not understand
(unknown-argument): it keeps them, as Qpid's C++ broker does; and no exchange refuses a file or a packet (refusal).
"""

from peer_0_10 import Peer, command, control, new_broker, transfer

ROOM = {"content_size_max": 4096, "argument_size_max": 2048, "receive_buffer_size": 8192, "send_buffer_size": 8192}
X = {"format": 1, "global_id": b"x", "branch_id": b"b"}
SUBSCRIBE = {"queue": "q", "destination": "d", "accept_mode": 0, "acquire_mode": 0}
NONE = dict(SUBSCRIBE, accept_mode=1)
SELECTED = (("dtx_select", {}),)
STARTED = SELECTED + (("dtx_start", {"xid": X}),)
ENDED = STARTED + (("dtx_end", {"xid": X}),)
PREPARED = STARTED + (("queue_declare", {"queue": "w"}), "publish", ("dtx_end", {"xid": X}), ("dtx_prepare", {"xid": X}))

# (command, field or "", name of the exception, code, commands before it, fields). "publish": a transfer to the queue w.
EXCEPTIONS = (
    ("message.subscribe", "", "queue-not-found", 404, (), dict(SUBSCRIBE, queue="none")),
    ("message.subscribe", "destination", "unique-subscriber-destination", 530, (("message_subscribe", SUBSCRIBE),), SUBSCRIBE),
    (
        "message.subscribe",
        "exclusive",
        "in-use",
        405,
        (("message_subscribe", SUBSCRIBE),),
        dict(SUBSCRIBE, destination="e", exclusive=True),
    ),
    ("message.resume", "destination", "destination-not-found", 404, (), {"destination": "none", "resume_id": "r"}),
    ("message.cancel", "destination", "subscription-not-found", 404, (), {"destination": "d"}),
    ("tx.select", "", "exactly-once", 409, (("tx_select", {}),), {}),
    ("tx.select", "", "no-dtx", 409, SELECTED, {}),
    ("tx.select", "", "explicit-accepts", 530, (("message_subscribe", NONE),), {}),
    ("message.subscribe", "", "explicit-accepts of tx.select", 530, (("tx_select", {}),), NONE),
    ("tx.commit", "", "select-required", 409, (), {}),
    ("tx.rollback", "", "select-required", 409, (), {}),
    ("dtx.start", "", "illegal-state", 409, (), {"xid": X}),
    ("dtx.start", "", "already-known", 530, ENDED, {"xid": X}),
    ("dtx.start", "", "join-and-resume", 530, SELECTED, {"xid": X, "join": True, "resume": True}),
    ("dtx.start", "xid", "unknown-xid", 530, ENDED, {"xid": X}),  # "If xid is already known by the broker"
    ("dtx.end", "", "illegal-state", 409, (), {"xid": X}),
    ("dtx.end", "", "suspend-and-fail", 530, STARTED, {"xid": X, "suspend": True, "fail": True}),
    ("dtx.end", "xid", "not-associated", 409, SELECTED, {"xid": X}),
    ("dtx.commit", "", "illegal-state", 409, STARTED, {"xid": X, "one_phase": True}),
    ("dtx.commit", "xid", "unknown-xid", 404, SELECTED, {"xid": X}),
    ("dtx.commit", "xid", "not-disassociated", 409, STARTED, {"xid": X, "one_phase": True}),
    ("dtx.commit", "one-phase", "one-phase", 409, ENDED, {"xid": X}),
    ("dtx.commit", "one-phase", "two-phase", 409, PREPARED, {"xid": X, "one_phase": True}),
    ("dtx.forget", "", "illegal-state", 409, ENDED, {"xid": X}),
    ("dtx.forget", "xid", "unknown-xid", 404, SELECTED, {"xid": X}),
    ("dtx.forget", "xid", "not-disassociated", 409, STARTED, {"xid": X}),
    ("dtx.get-timeout", "xid", "unknown-xid", 404, SELECTED, {"xid": X}),
    ("dtx.prepare", "", "illegal-state", 409, PREPARED, {"xid": X}),
    ("dtx.prepare", "xid", "unknown-xid", 404, SELECTED, {"xid": X}),
    ("dtx.prepare", "xid", "not-disassociated", 409, STARTED, {"xid": X}),
    ("dtx.rollback", "", "illegal-state", 409, STARTED, {"xid": X}),
    ("dtx.rollback", "xid", "unknown-xid", 404, SELECTED, {"xid": X}),
    ("dtx.rollback", "xid", "not-disassociated", 409, STARTED, {"xid": X}),
    ("dtx.set-timeout", "xid", "unknown-xid", 404, SELECTED, {"xid": X, "timeout": 1}),
    ("exchange.declare", "exchange", "reserved-names", 530, (), {"exchange": "amq.mine", "type": "direct"}),
    ("exchange.declare", "exchange", "exchange-name-required", 542, (), {"exchange": "", "type": "direct"}),
    ("exchange.declare", "type", "typed", 530, (), {"exchange": "e", "type": "direct"}),
    ("exchange.declare", "type", "typed", 530, (), {"exchange": "amq.direct", "type": "topic"}),
    ("exchange.declare", "type", "exchange-type-not-found", 404, (), {"exchange": "n", "type": "no such"}),
    (
        "exchange.declare",
        "alternate-exchange",
        "pre-existing-exchange",
        530,
        (),
        {"exchange": "e", "type": "fanout", "alternate_exchange": "o"},
    ),
    ("exchange.declare", "passive", "not-found", 404, (), {"exchange": "none", "passive": True}),
    ("exchange.delete", "exchange", "exists", 404, (), {"exchange": "none"}),
    ("exchange.delete", "exchange", "exchange-name-required", 542, (), {"exchange": ""}),
    ("exchange.delete", "exchange", "used-as-alternate", 530, (), {"exchange": "a"}),
    ("exchange.delete", "exchange", "used-as-alternate", 530, (), {"exchange": "b"}),
    ("exchange.delete", "if-unused", "exchange-in-use", 406, (), {"exchange": "bound", "if_unused": True}),
    ("exchange.bind", "queue", "empty-queue", 542, (), {"queue": "", "exchange": "e"}),
    ("exchange.bind", "queue", "queue-existence", 404, (), {"queue": "none", "exchange": "e"}),
    ("exchange.bind", "exchange", "exchange-existence", 404, (), {"queue": "q", "exchange": "none"}),
    ("exchange.bind", "exchange", "exchange-name-required", 542, (), {"queue": "q", "exchange": "", "binding_key": "k"}),
    ("exchange.unbind", "queue", "non-existent-queue", 404, (), {"queue": "none", "exchange": "e"}),
    ("exchange.unbind", "exchange", "non-existent-exchange", 404, (), {"queue": "q", "exchange": "none"}),
    ("exchange.unbind", "exchange", "exchange-name-required", 542, (), {"queue": "q", "exchange": "", "binding_key": "q"}),
    ("exchange.unbind", "binding-key", "non-existent-binding-key", 404, (), {"queue": "q", "exchange": "bound", "binding_key": "other"}),
    ("queue.declare", "queue", "reserved-prefix", 530, (), {"queue": "amq.mine"}),
    ("queue.declare", "alternate-exchange", "pre-existing-exchange", 530, (), {"queue": "q", "alternate_exchange": "o"}),
    ("queue.declare", "alternate-exchange", "unknown-exchange", 404, (), {"queue": "n", "alternate_exchange": "none"}),
    ("queue.declare", "passive", "passive", 404, (), {"queue": "none", "passive": True}),
    ("queue.declare", "exclusive", "in-use", 405, (), {"queue": "others", "exclusive": True}),
    ("queue.delete", "queue", "empty-name", 542, (), {"queue": ""}),
    ("queue.delete", "queue", "queue-exists", 404, (), {"queue": "none"}),
    ("queue.delete", "if-unused", "if-unused-flag", 406, (("message_subscribe", SUBSCRIBE),), {"queue": "q", "if_unused": True}),
    ("queue.delete", "if-empty", "not-empty", 406, (("queue_declare", {"queue": "w"}), "publish"), {"queue": "w", "if_empty": True}),
    ("queue.purge", "queue", "empty-name", 542, (), {"queue": ""}),
    ("queue.purge", "queue", "queue-exists", 404, (), {"queue": "none"}),
    ("file.consume", "queue", "queue-exists-if-empty", 530, (), {"queue": "", "consumer_tag": "c"}),
    (
        "file.consume",
        "consumer-tag",
        "not-existing-consumer",
        530,
        (("message_subscribe", SUBSCRIBE),),
        {"queue": "q", "consumer_tag": "d"},
    ),
    ("file.consume", "consumer-tag", "not-empty-consumer-tag", 530, (), {"queue": "q", "consumer_tag": ""}),
    (
        "file.consume",
        "exclusive",
        "in-use",
        405,
        (("message_subscribe", SUBSCRIBE),),
        {"queue": "q", "consumer_tag": "c", "exclusive": True},
    ),
    ("stream.consume", "queue", "queue-exists-if-empty", 530, (), {"queue": "", "consumer_tag": "c"}),
    (
        "stream.consume",
        "consumer-tag",
        "not-existing-consumer",
        530,
        (("message_subscribe", SUBSCRIBE),),
        {"queue": "q", "consumer_tag": "d"},
    ),
    ("stream.consume", "consumer-tag", "not-empty-consumer-tag", 530, (), {"queue": "q", "consumer_tag": ""}),
    (
        "stream.consume",
        "exclusive",
        "in-use",
        405,
        (("message_subscribe", SUBSCRIBE),),
        {"queue": "q", "consumer_tag": "c", "exclusive": True},
    ),
)


def ready(broker, name):
    """A peer with a queue q and exchanges: e without an alternate, bound to q by k: bound; a and b, in use as alternates; o for nothing."""
    peer = Peer(broker, name=name)
    peer.do("queue_declare", queue="q")
    for exchange in ("e", "o", "a", "b"):
        peer.do("exchange_declare", exchange=exchange, type="fanout")
    peer.do("exchange_declare", exchange="bound", type="direct", alternate_exchange="a")
    peer.do("exchange_bind", queue="q", exchange="bound", binding_key="k")
    peer.do("queue_declare", queue="with", alternate_exchange="b")
    peer.all()
    return peer


def raised(peer):
    """The code of the exception that has come, or None."""
    codes = [fields["error_code"] for name, fields, _, _, _ in peer.all() if name == "execution_exception"]
    assert len(codes) < 2 and not peer.connection.closed
    return codes[0] if codes else None


def test_each_exception_of_the_tables_has_its_code():
    for number, (title, field, name, code, before, given) in enumerate(EXCEPTIONS):
        broker = new_broker(**ROOM)
        other = Peer(broker, name=b"other")
        other.do("queue_declare", queue="others", exclusive=True)
        peer = ready(broker, b"s%d" % number)
        for each in before:
            if each == "publish":
                peer.publish(b"m", key="w")
            else:
                peer.do(each[0], **each[1])
        assert raised(peer) is None, (title, name)
        peer.do(title.replace(".", "_").replace("-", "_"), **given)
        assert raised(peer) == code, (title, field, name)


def test_an_exchange_that_is_not_there_ends_the_session_of_who_publishes_to_it():
    """message.transfer destination nonexistent-exchange; the same of file.publish and stream.publish."""
    for accept in (0, 1):
        peer = ready(new_broker(**ROOM), b"s")
        peer.give(transfer(b"m", destination="none", key="q", accept_mode=accept))
        assert raised(peer) == 404


def test_a_deleted_queue_ends_the_sessions_of_its_subscriptions():
    """message.subscribe queue-deletion: resource-deleted, "This exception may occur at any time"."""
    for acquire in (0, 1):
        broker = new_broker(**ROOM)
        peer = ready(broker, b"s")
        peer.do("message_subscribe", queue="q", destination="d", accept_mode=0, acquire_mode=acquire)
        for unit in (0, 1):
            peer.do("message_flow", destination="d", unit=unit, value=10)
        peer.all()
        Peer(broker, name=b"other").do("queue_delete", queue="q")
        peer.connection.tick(broker.now)
        assert raised(peer) == 408


def test_what_is_there_is_not_asked_for_its_durable_and_auto_delete():
    """exchange.declare, queue.declare: "The server MUST ignore the durable field if the exchange already exists", and auto-delete; an
    alternate exchange that is not named stays, and so does one that is named again."""
    broker = new_broker(**ROOM)
    peer = ready(broker, b"s")
    for flags in ({}, {"durable": True}, {"auto_delete": True}, {"durable": True, "auto_delete": True}):
        peer.do("exchange_declare", exchange="e", type="fanout", **flags)
        peer.do("exchange_declare", exchange="bound", type="direct", **flags)
        peer.do("exchange_declare", exchange="bound", type="direct", alternate_exchange="a", **flags)
        peer.do("queue_declare", queue="q", **flags)
        peer.do("queue_declare", queue="with", **flags)
        peer.do("queue_declare", queue="with", alternate_exchange="b", **flags)
    assert raised(peer) is None
    assert not [each for each in (broker.exchanges["e"], broker.queues["q"]) if each.durable or each.auto_delete]
    peer.do("queue_declare", queue="lasting", durable=True, auto_delete=True)
    peer.do("queue_declare", queue="lasting")
    peer.do("queue_declare", queue="lasting", exclusive=True)
    assert raised(peer) is None and broker.queues["lasting"].durable and broker.queues["lasting"].auto_delete


def test_a_binding_is_not_altered_by_another_one_of_its_key():
    """exchange.bind: "A server MUST ignore duplicate bindings"; "The value of the arguments used for the binding MUST NOT be altered"."""
    broker = new_broker(**ROOM)
    peer = ready(broker, b"s")
    first, second = {"x-match": "all", "n": "1"}, {"x-match": "all", "n": "2"}
    for arguments in (first, first, second):
        peer.do("exchange_bind", queue="q", exchange="amq.match", binding_key="k", arguments=arguments)
    peer.do("exchange_bind", queue="q", exchange="amq.match", binding_key="other", arguments=second)
    for _ in range(2):
        peer.do("exchange_bind", queue="q", exchange="e")
        peer.do("exchange_bind", queue="q", exchange="e", arguments={"x": 1})
    assert raised(peer) is None
    assert sorted((key, arguments["n"]) for key, arguments in bound(broker, "amq.match")) == [(b"k", "1"), (b"other", "2")]
    assert bound(broker, "e") == [(b"", {})]
    peer.do("exchange_unbind", queue="q", exchange="amq.match", binding_key="k")
    assert [key for key, _ in bound(broker, "amq.match")] == [b"other"]


def bound(broker, exchange):
    """(key, arguments) of the bindings of q to an exchange."""
    return [(each.key, each.arguments) for each in broker.queues["q"].bound.values() if each.exchange.name == exchange]


def test_an_exclusive_queue_is_its_sessions_and_not_its_connections():
    """queue.declare exclusive: "that queue cannot be used by any other session until the declaring session closes"; passive looks alone."""
    for title, given, code in (
        ("queue_declare", {"queue": "x"}, 405),
        ("queue_declare", {"queue": "x", "exclusive": True}, 405),
        ("queue_declare", {"queue": "x", "passive": True}, None),
        ("exchange_bind", {"queue": "x", "exchange": "amq.fanout"}, 405),
        ("exchange_unbind", {"queue": "x", "exchange": "amq.fanout"}, 405),
        ("message_subscribe", {"queue": "x", "destination": "d"}, 405),
        ("message_subscribe", {"queue": "x", "destination": "d", "acquire_mode": 1}, 405),
        ("file_consume", {"queue": "x", "consumer_tag": "c"}, 405),
        ("stream_consume", {"queue": "x", "consumer_tag": "c"}, 405),
        ("queue_purge", {"queue": "x"}, 405),
        ("queue_delete", {"queue": "x"}, 405),
        ("queue_query", {"queue": "x"}, None),
    ):
        peer = Peer(new_broker(**ROOM), name=b"one")
        peer.do("queue_declare", queue="x", exclusive=True)
        for _ in range(2):
            peer.do("queue_declare", queue="x")
        peer.all()
        peer.attach(b"two", 1)
        peer.give(command(title, 1, **given))
        assert raised(peer) == code, (title, given)


def test_of_exclusive_queues_those_with_auto_delete_go_with_their_session():
    """queue.declare auto-delete: "If this field is set and the exclusive field is also set, then the queue MUST be deleted when the session
    closes", and not with its last consumer, as one that is not exclusive; without it the queue is for others then."""
    broker = new_broker(**ROOM)
    peer, other = Peer(broker, name=b"one"), Peer(broker, name=b"other")
    for name, flags in (
        ("goes", {"exclusive": True, "auto_delete": True}),
        ("stays", {"exclusive": True}),
        ("shared", {"auto_delete": True}),
    ):
        peer.do("queue_declare", queue=name, **flags)
        peer.do("message_subscribe", queue=name, destination=name, accept_mode=0, acquire_mode=0)
        peer.do("message_cancel", destination=name)
    assert sorted(broker.queues) == ["goes", "stays"] and raised(peer) is None
    peer.do("queue_purge", queue="none")
    assert raised(peer) == 404 and sorted(broker.queues) == ["stays"]
    other.do("queue_declare", queue="stays")
    other.do("queue_delete", queue="stays")
    assert raised(other) is None and not broker.queues


def test_what_a_deleted_queue_holds_goes_to_its_alternate_exchange():
    """queue.delete: "any pending messages are sent to the alternate-exchange if defined, or discarded if it is not"; also of a queue that
    is bound to its own."""
    broker = new_broker(arena_size=1 << 18, message_count_max=512, entry_count_max=1024, **ROOM)
    peer = ready(broker, b"s")
    peer.do("queue_declare", queue="rest")
    for queue in ("rest", "with"):
        peer.do("exchange_bind", queue=queue, exchange="b")
    for number in range(90):
        peer.publish(b"%d" % number, key="with")
    peer.publish(b"of no alternate", key="q")
    peer.do("queue_delete", queue="with")
    peer.do("queue_delete", queue="q")
    for _ in range(20):
        peer.connection.process()
        broker.run()
    assert raised(peer) is None and sorted(broker.queues) == ["rest"]
    peer.subscribe("rest", messages=0xFFFFFFFF)
    came = []
    for _ in range(100):
        broker.run()
        came += [body for _, body in peer.transfers()]
        peer.connection.tick(broker.now)
    assert came == [b"%d" % number for number in range(90)]


def test_what_a_queue_holds_that_goes_by_itself_goes_to_its_alternate_exchange():
    """queue.declare, alternate-exchange: "or when they are orphaned by queue deletion. When present, rejected or orphaned messages MUST be
    routed to the alternate-exchange"; auto-delete: "the queue is deleted when all the consumers have finished using it", and an exclusive
    one with its session. What the session had not accepted is orphaned too."""
    for exclusive in (False, True):
        for way in ("cancel", "detach", "lost"):
            broker = new_broker(arena_size=1 << 18, message_count_max=512, entry_count_max=1024, **ROOM)
            keeper, peer = ready(broker, b"k"), Peer(broker, name=b"s")
            keeper.do("queue_declare", queue="rest")
            keeper.do("exchange_bind", queue="rest", exchange="b")
            peer.do("queue_declare", queue="goes", alternate_exchange="b", auto_delete=True, exclusive=exclusive)
            for number in range(90):
                peer.publish(b"%d" % number, key="goes")
            peer.subscribe("goes", messages=10, accept=0)
            assert len(peer.transfers()) == 10
            if way == "cancel":
                peer.do("message_cancel", destination="d")
            if way == "detach" or exclusive:
                peer.give(control("session_detach", name=b"s"))
            if way == "lost":
                peer.connection.finish()
            for _ in range(20):
                broker.run()
            assert "goes" not in broker.queues, (exclusive, way)
            keeper.subscribe("rest", messages=0xFFFFFFFF)
            came = []
            for _ in range(100):
                broker.run()
                came += [int(body) for _, body in keeper.transfers()]
                keeper.connection.tick(broker.now)
            held = way == "cancel" and not exclusive  # "This does not affect already delivered messages"
            assert sorted(came) == list(range(10 if held else 0, 90)), (exclusive, way)
            assert broker.jobs == []


def test_a_queue_that_is_used_again_before_it_has_gone_stays():
    """auto-delete with an alternate exchange: what it holds is sent on in turns."""
    broker = new_broker(arena_size=1 << 18, message_count_max=512, entry_count_max=1024, **ROOM)
    peer = ready(broker, b"s")
    peer.do("queue_declare", queue="goes", alternate_exchange="b", auto_delete=True)
    peer.publish(b"x", key="goes")
    peer.subscribe("goes", messages=0)
    again = command("message_subscribe", queue="goes", destination="d", accept_mode=0, acquire_mode=0)
    peer.give(command("message_cancel", destination="d") + again)
    broker.run()
    assert broker.queues["goes"].message_count() == 1 and broker.jobs == []


def test_a_subscription_that_browses_may_be_the_only_one():
    """message.subscribe exclusive: "This prevents other subscribers from subscribing to the queue", whatever they acquire."""
    broker = new_broker(**ROOM)
    for number, (acquire, then) in enumerate(((0, 0), (0, 1), (1, 0), (1, 1))):
        peer, other = ready(broker, b"s%d" % number), Peer(broker, name=b"o%d" % number)
        peer.do("message_subscribe", queue="q", destination="d", accept_mode=0, acquire_mode=acquire, exclusive=True)
        other.do("message_subscribe", queue="q", destination="d", accept_mode=0, acquire_mode=then)
        assert raised(other) == 405
        if number & 1:
            peer.do("message_cancel", destination="d")
        else:
            peer.give(control("session_detach", name=b"s%d" % number))
        third = Peer(broker, name=b"t%d" % number)
        third.do("message_subscribe", queue="q", destination="d", accept_mode=0, acquire_mode=then)
        assert raised(third) is None
        third.connection.lose()
