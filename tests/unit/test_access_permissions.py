"""Users and permissions through frames: which method needs which, RabbitMQ's texts, virtual host, user-id, changes at run time."""

from peer import Peer, content, encoded

from leveret.core.access import passwords, permissions
from leveret.core.access.permissions import EVERYTHING, Access, User
from leveret.core.broker.broker import Broker
from leveret.core.limits import BOARD, Limits

NOTHING = ("", "", "")


def new_broker(*users, **given):
    """A broker with these users, whose passwords are their names."""
    values = dict(BOARD)
    values.update(connection_count_max=16, stranger_share_max=100)
    return Broker(Limits(**values), b"unit", Access(users, b"unit", **given))


def user(name, permissions, tags=()):
    return User(name, passwords.hashed(name, b"salt", 1), tags, permissions)


class Named(Peer):
    """A peer that logs in as the user of that name."""

    def __init__(self, broker, name, opened=True):
        Peer.__init__(self, broker, log_in=False)
        from leveret.core.amqp_0_9.spec_0_9_1 import HEADER

        self.give(HEADER)
        self.expect("connection_start")
        self.give(
            encoded(
                "connection_start_ok",
                0,
                {"capabilities": {"authentication_failure_close": True}},
                "PLAIN",
                ("\x00%s\x00%s" % (name, name)).encode("utf-8"),
                "en_US",
            )
        )
        self.expect("connection_tune")
        if opened:
            self.give(encoded("connection_tune_ok", 0, 0, 0, 0) + encoded("connection_open", 0, "/", "", False))
            self.expect("connection_open_ok")
            self.ask("channel_open", "channel_open_ok", "")

    def refused(self, octets):
        """Send this on channel 1: the text of the 403 that closed the channel, or "" when it was not refused; a fresh channel after it."""
        self.give(octets)
        frames = self.frames()
        if [name for name, _, _ in frames] != ["channel_close"]:
            self.ask("channel_close", "channel_close_ok", 200, "", 0, 0)
            self.ask("channel_open", "channel_open_ok", "")
            return ""
        assert frames[0][2][0] == 403, frames
        self.give(encoded("channel_close_ok", 1))
        self.ask("channel_open", "channel_open_ok", "")
        return frames[0][2][1]


def declare(name, passive=False, arguments=None):
    return encoded("queue_declare", 1, 0, name, passive, False, False, False, False, arguments or {})


def exchange(name, passive=False, arguments=None):
    return encoded("exchange_declare", 1, 0, name, "direct", passive, False, False, False, False, arguments or {})


# Octets, and what they need: (permission as its place in configure, write, read; kind; name).
METHODS = (
    (exchange("new"), ((0, "exchange", "new"),)),
    (exchange("e", passive=True), ()),
    (exchange("ae", arguments={"alternate-exchange": "e"}), ((0, "exchange", "ae"), (2, "exchange", "ae"), (1, "exchange", "e"))),
    (encoded("exchange_delete", 1, 0, "new", False, False), ((0, "exchange", "new"),)),
    (encoded("exchange_bind", 1, 0, "e", "f", "k", False, {}), ((1, "exchange", "e"), (2, "exchange", "f"))),
    (encoded("exchange_unbind", 1, 0, "e", "f", "k", False, {}), ((1, "exchange", "e"), (2, "exchange", "f"))),
    (declare("fresh"), ((0, "queue", "fresh"),)),
    (declare("q", passive=True), ()),
    (declare("dlx", arguments={"x-dead-letter-exchange": "e"}), ((0, "queue", "dlx"), (2, "queue", "dlx"), (1, "exchange", "e"))),
    (encoded("queue_bind", 1, 0, "q", "e", "k", False, {}), ((1, "queue", "q"), (2, "exchange", "e"))),
    (encoded("queue_unbind", 1, 0, "q", "e", "k", {}), ((1, "queue", "q"), (2, "exchange", "e"))),
    (encoded("queue_purge", 1, 0, "q", False), ((2, "queue", "q"),)),
    (encoded("queue_delete", 1, 0, "fresh", False, False, False), ((0, "queue", "fresh"),)),
    (encoded("basic_get", 1, 0, "q", True), ((2, "queue", "q"),)),
    (encoded("basic_consume", 1, 0, "q", "c", False, True, False, False, {}), ((2, "queue", "q"),)),
    (content(1, "e", "k", b"x"), ((1, "exchange", "e"),)),
    (content(1, "", "q", b"x"), ((1, "exchange", "amq.default"),)),
)


def only(needs, without=None):
    """Permissions for just these names, leaving one of them out."""
    names = [[], [], []]
    for need in needs:
        if need is not without:
            names[need[0]].append(need[2].replace(".", "\\."))
    return tuple(["^(" + "|".join(each) + ")$" if each else "" for each in names])


def test_every_method_is_refused_for_each_permission_that_it_lacks_and_taken_with_just_those():
    broker = new_broker(user("root", EVERYTHING), user("limited", NOTHING))
    root = Named(broker, "root")
    limited = Named(broker, "limited")
    count = 0
    for octets, needs in METHODS:
        for name in ("fresh", "dlx"):
            root.refused(encoded("queue_delete", 1, 0, name, False, False, False))
        root.refused(encoded("exchange_delete", 1, 0, "ae", False, False))
        root.refused(exchange("e"))
        root.refused(exchange("f"))
        root.refused(declare("q"))
        for need in needs:
            broker.access.users["limited"].permit(only(needs, need))
            told = limited.refused(octets)
            assert told == "ACCESS_REFUSED - access to %s '%s' in vhost '/' refused for user 'limited'" % need[1:], (need, told)
            count += 1
        broker.access.users["limited"].permit(only(needs))
        assert limited.refused(octets) == "", (octets, needs)
    assert broker.counters["access_refused"] == count


def test_a_generated_name_needs_configure_too():
    broker = new_broker(user("a", ("^amq\\.gen-.+$", "", "")), user("b", ("^b", "", "")))
    assert Named(broker, "a").declare("")[0].startswith("amq.gen-")
    told = Named(broker, "b").refused(declare(""))
    assert told.startswith("ACCESS_REFUSED - access to queue 'amq.gen-") and told.endswith("' in vhost '/' refused for user 'b'"), told
    assert len(broker.queues) == 1


def test_the_current_queue_is_looked_at_where_no_name_is_given():
    broker = new_broker(user("a", (".*", "", "^mine$")))
    peer = Named(broker, "a")
    peer.declare("other")
    peer.give(encoded("basic_get", 1, 0, "", True))
    assert peer.expect("channel_close")[1] == "ACCESS_REFUSED - access to queue 'other' in vhost '/' refused for user 'a'"


def test_without_any_permission_the_virtual_host_is_closed():
    broker = new_broker(user("a", None))
    peer = Named(broker, "a", opened=False)
    peer.give(encoded("connection_tune_ok", 0, 0, 0, 0) + encoded("connection_open", 0, "/", "", False))
    code, text, _, _ = peer.expect("connection_close")
    assert (code, text) == (530, "NOT_ALLOWED - access to vhost '/' refused for user 'a'")


def test_permissions_that_change_hold_for_sessions_that_are_there():
    broker = new_broker(user("a", EVERYTHING))
    peer = Named(broker, "a")
    peer.declare("q")
    assert peer.refused(content(1, "", "q", b"1")) == ""
    broker.access.put(user("a", (".*", "^no$", ".*")))
    assert peer.refused(content(1, "", "q", b"2")) == "ACCESS_REFUSED - access to exchange 'amq.default' in vhost '/' refused for user 'a'"
    broker.access.put(user("a", EVERYTHING))
    assert peer.refused(content(1, "", "q", b"3")) == ""
    broker.access.remove("a")
    assert peer.refused(content(1, "", "q", b"4")) != ""
    assert broker.queues["q"].message_count() == 2


def test_update_secret_is_answered():
    broker = new_broker(user("a", EVERYTHING))
    peer = Named(broker, "a")
    peer.give(encoded("connection_update_secret", 0, b"new", "because"))
    peer.expect("connection_update_secret_ok")


def test_user_id_is_the_publishers_own_unless_it_may_speak_for_others():
    broker = new_broker(user("a", EVERYTHING), user("b", EVERYTHING, ("impersonator",)))
    peer = Named(broker, "a")
    peer.declare("q")
    peer.publish("q", b"1", given={"user_id": "a"})
    Named(broker, "b").publish("q", b"2", given={"user_id": "a"})
    assert broker.queues["q"].message_count() == 2
    peer.publish("q", b"3", given={"user_id": "b"})
    assert peer.expect("channel_close")[:2] == [406, "PRECONDITION_FAILED - user_id property set to 'b' but authenticated user was 'a'"]


def test_what_is_granted_is_remembered_within_a_bound_for_all_users_together():
    """granted_count_max."""
    one, two = [User(name, None, (), ("^x", "", "^x"), 3) for name in "ab"]
    users = permissions.Access([one, two])
    for number in range(10):
        for subject in (one, two):
            assert subject.may(permissions.CONFIGURE, "x%d" % number) and not subject.may(permissions.CONFIGURE, "y%d" % number)
            assert subject.may(permissions.READ, "x%d" % number)
            assert 0 < sum(len(names) for each in (one, two) for names in each.granted) == users.granted_count <= 3
    assert not one.may(permissions.WRITE, "x1") and not one.granted[permissions.WRITE]
    users.remove("a")
    users.remove("b")
    assert users.granted_count == 0 and not one.may(permissions.READ, "x1")


def test_an_expression_is_looked_for_anywhere_in_a_name_and_the_empty_one_nowhere():
    for expression, name, expected in (
        ("b", "abc", True),
        ("^b", "abc", False),
        ("", "", False),
        ("", "a", False),
        (".*", "a", True),
        ("^$", "a", False),
        ("^(a|b)$", "b", True),
        ("^s\\.\\d+$", "s.17", True),
        ("^s\\.\\d+$", "s.x", False),
    ):
        assert User("u", None, (), (expression, "", "")).may(permissions.CONFIGURE, name) is expected, (expression, name)


def test_an_expression_that_cannot_be_used_is_said_at_once():
    for expression in ("(", "[", "*", "a**", "[[:nothing:]]", "(?=a)", "(a)\\1", 5, None):
        try:
            User("u", None, (), (expression, "", ""))
        except ValueError as error:
            assert "permission" in str(error) and "\n" not in str(error)
        else:
            raise AssertionError(expression)
