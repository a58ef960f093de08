"""SIGHUP: a running broker reads users, permissions and policies of its configuration file anew, and says what it does not read."""

import os
import signal

import pika
import pika.exceptions
import pytest
from test_serve import Serve

from leveret.core.broker.broker import Broker
from leveret.core.limits import Limits
from leveret.tools import config, reload

USER = '[[user]]\nname = "%s"\npassword = "%s"\nconfigure = "%s"\nwrite = ".*"\nread = ".*"\ntags = ["administrator"]\n'
POLICY = '[[policy]]\nname = "short"\npattern = "^t"\ndefinition = { max-length = %d }\n'


class Configured:
    """A broker with a file; what it says goes to another."""

    def __init__(self, folder, text, *arguments):
        self.path = folder / "leveret.toml"
        self.path.write_text(text)
        self.server = Serve("--listen", "amqp://127.0.0.1:0", "--config", str(self.path), *arguments)

    def reload(self, text, words):
        """Change the file, and wait for a sentence with these words: all that was said since."""
        self.path.write_text(text)
        self.server.process.send_signal(signal.SIGHUP)
        said = ""
        while words not in said:
            line = self.server.process.stderr.readline()
            assert line, "the broker has ended: " + said
            said += line
        return said

    def connect(self, name, password=None):
        return pika.BlockingConnection(
            pika.ConnectionParameters("127.0.0.1", self.server.port, credentials=pika.PlainCredentials(name, password or name), heartbeat=0)
        )


@pytest.fixture
def configured(tmp_path):
    made = []

    def start(text, *arguments):
        made.append(Configured(tmp_path, text, *arguments))
        return made[-1]

    yield start
    for each in made:
        if each.server.process.poll() is None:
            assert each.server.end()[0] == 0


def test_users_come_change_and_go_and_connections_of_those_that_stay_stay(configured):
    broker = configured(USER % ("a", "a", ".*") + USER % ("b", "b", ".*"))
    staying, going = broker.connect("a"), broker.connect("b")
    channel = staying.channel()
    channel.queue_declare("q")
    told = broker.reload(USER % ("a", "new", "^only$") + USER % ("c", "c", ".*"), "read anew from")
    assert "2 users (1 new, 1 removed)" in told and "listeners, data and the other limits are read at a start only" in told
    with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="user 'b' is deleted"):
        for _ in range(100):
            going.process_data_events(0.1)
    channel.basic_publish("", "q", b"still here")
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="ACCESS_REFUSED"):
        channel.queue_declare("other")
    broker.connect("c").close()
    broker.connect("a", "new").close()
    for name in ("a", "b"):
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            broker.connect(name)
    staying.close()


def test_topic_permissions_come_change_and_go(configured):
    """They hold for the next publish of a connection that is there, in the words of those that the API sets."""
    plain = USER % ("a", "a", ".*")
    topics = plain + 'topic_permissions = {{ "amq.topic" = {{ write = "{}", read = "^k$" }} }}\n'
    broker = configured(topics.format("^{username}[.]"))
    connection = broker.connect("a")

    def refused(key):
        channel = connection.channel()
        channel.confirm_delivery()
        try:
            channel.basic_publish("amq.topic", key, b"")
        except pika.exceptions.ChannelClosedByBroker as error:
            assert f"access to topic '{key}' in exchange 'amq.topic'" in str(error)
            return True
        channel.close()
        return False

    assert not refused("a.b") and refused("b.a")
    broker.reload(topics.format("^b"), "read anew from")
    assert refused("a.b") and not refused("b.a")
    assert "topic_permissions" in broker.reload(topics.format("("), "stay as they are")
    assert refused("a.b") and not refused("b.a")
    broker.reload(plain, "read anew from")
    assert not refused("a.b") and not refused("b.a")
    connection.close()


def test_the_guest_of_a_broker_without_users_goes_when_the_file_names_some(configured):
    broker = configured("")
    broker.connect("guest").close()
    broker.reload(USER % ("a", "a", ".*"), "read anew from")
    broker.connect("a").close()
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        broker.connect("guest")


def test_a_file_without_users_or_with_a_mistake_changes_nothing(configured):
    """An empty file, as an editor leaves it for a moment, must not open the broker to guest."""
    broker = configured(USER % ("a", "a", ".*"))
    kept = broker.connect("a")
    assert "names no [[user]] any more: users stay as they are" in broker.reload("", "read anew from")
    for text in ("[[user]\n", USER % ("c", "c", ".*") + '[[user]]\nname = "d"\nconfigure = "("\n', USER % ("c", "c", ".*") * 2):
        told = broker.reload(text, "users and policies stay as they are")
        assert "ERROR" in told
        with pytest.raises(pika.exceptions.ProbableAuthenticationError):
            broker.connect("c")
    kept.channel().queue_declare("q")
    kept.close()
    broker.path.unlink()
    broker.server.process.send_signal(signal.SIGHUP)
    while "cannot be read" not in broker.server.process.stderr.readline():
        pass
    broker.connect("a").close()


def test_policies_are_set_anew_and_one_that_is_gone_from_the_file_stays_and_is_named(configured):
    broker = configured(USER % ("a", "a", ".*") + POLICY % 5)
    connection = broker.connect("a")
    channel = connection.channel()
    channel.queue_declare("t")

    def length():
        for _ in range(9):
            channel.basic_publish("", "t", b"x")
        return channel.queue_declare("t", passive=True).method.message_count

    assert length() == 5
    broker.reload(USER % ("a", "a", ".*") + POLICY % 3, "1 policies")
    assert length() == 3
    told = broker.reload(USER % ("a", "a", ".*"), "0 policies")
    assert "policy 'short' is not in" in told and "removed by its name" in told
    assert length() == 3
    connection.close()


def test_what_is_read_at_a_start_only_is_said(configured):
    broker = configured(USER % ("a", "a", ".*"))
    told = broker.reload(USER % ("a", "a", ".*") + "[limits]\nqueue_count_max = 2000\n", "read anew from")
    assert "has another [limits] than at the start: it takes effect with the next one" in told and "WARNING" in told


def test_limits_that_nothing_was_made_by_change_and_the_others_wait(configured):
    text = USER % ("a", "a", ".*")
    broker = configured(text)
    told = broker.reload(text + "[limits]\nheartbeat_s = 7\nqueue_count_max = 5\n", "read anew from")
    assert "heartbeat_s 7 (was 60)" in told and "another [limits] than at the start" in told
    connection = broker.connect("a")
    assert connection._impl.params.heartbeat == 0 and "heartbeat_s" not in broker.reload(text + "[limits]\nheartbeat_s = 7\n", "read anew")
    connection.close()
    assert "stay as they are" in broker.reload(text + "[limits]\nheartbeat_s = 7\nlogin_pause_ms = -1\n", "stay as they are")
    assert "heartbeat_s 60 (was 7)" in broker.reload(text, "read anew from")


def test_the_level_of_the_log_changes(configured):
    text = USER % ("a", "a", ".*")
    broker = configured(text)
    assert "log_level warning" in broker.reload('log_level = "warning"\n' + text, "read anew from")
    assert "INFO" not in broker.reload("[[user]\n", "stay as they are")
    assert "log_level info" in broker.reload('log_level = "info"\n' + text, "read anew from")


def test_a_wrong_policy_among_right_ones_changes_nothing():
    """Policies are set before users, and those that were set go back."""
    broker = Broker(Limits(policy_count_max=2))
    said = []

    def read(text):
        path = "/proc/self/fd/%d" % written(text)
        reading = reload.Reload(broker, path, config.read_at_start(""), [], lambda sentence, level=0: said.append(sentence))
        while not reading.step():
            pass
        return reading

    def written(text):
        number = os.memfd_create("leveret")
        os.write(number, text.encode())
        return number

    assert not read(POLICY % 5).failed and broker.policies.by_name["short"].definition == {"max-length": 5}
    others = "".join((POLICY % 6).replace("short", name) for name in ("b", "c"))
    assert read(USER % ("a", "a", ".*") + POLICY % 7 + others).failed
    assert list(broker.access.users) == ["guest"] and "holds 2 policies at most" in said[-1]
    assert {name: policy.definition for name, policy in broker.policies.by_name.items()} == {"short": {"max-length": 5}}
    many = "".join(USER % (f"u{number}", "u", ".*") for number in range(3))
    broker.limits.user_count_max = 2
    assert read(many).failed and "user_count_max" in said[-1] and list(broker.access.users) == ["guest"]


BRIDGE = """
[[bridge]]
name = "%s"
gateway = "%s"
queue = "here"
upstream = ["amqp://guest:guest@127.0.0.1:%d/"]
exchange = "amq.fanout"
"""


def test_bridges_come_change_and_go(configured):
    upstream = Serve("--listen", "amqp://127.0.0.1:0")
    try:
        text = USER % ("a", "a", ".*")
        broker = configured(text)
        there = upstream.connect().channel()
        there.queue_declare("there")
        there.queue_bind("there", "amq.fanout")
        here = broker.connect("a").channel()
        here.queue_declare("here")

        def moves(body):
            here.basic_publish("", "here", body)
            for _ in range(600):
                _, _, got = there.basic_get("there", auto_ack=True)
                if got is not None:
                    return got == body
                there.connection.sleep(0.05)
            return False

        assert "1 bridges begun anew, 0 ended" in broker.reload(text + BRIDGE % ("up", "g", upstream.port), "read anew from")
        assert moves(b"1")
        assert "begun anew" not in broker.reload(text + BRIDGE % ("up", "g", upstream.port), "read anew from")
        changed = BRIDGE % ("up", "g", upstream.port) + "refusal_attempts = 7\n"
        assert "1 bridges begun anew, 0 ended" in broker.reload(text + changed, "read anew from")
        assert moves(b"2")
        assert "0 bridges begun anew, 1 ended" in broker.reload(text, "read anew from")
        many = "".join(BRIDGE % ("b%d" % number, "g%d" % number, upstream.port) for number in range(9))
        assert "bridges change with the next start" in broker.reload(text + many, "read anew from")
    finally:
        assert upstream.end()[0] == 0


def test_who_is_gone_from_the_file_does_not_come_back_from_the_log(configured, tmp_path):
    """A user of the file whose name management gave to one in the log before."""
    data = ("--data", str(tmp_path / "data"))
    broker = configured(USER % ("a", "a", ".*") + USER % ("b", "b", ".*"), *data)
    broker.reload(USER % ("a", "a", ".*"), "1 removed")
    assert broker.server.end()[0] == 0
    broker = configured(USER % ("a", "a", ".*"), *data)
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        broker.connect("b")


def test_one_password_in_the_clear_is_calculated_a_step_so_that_nobody_waits_for_all(tmp_path):
    """Each takes password_rounds; the users are taken over together, behind the last."""
    path = tmp_path / "leveret.toml"
    path.write_text("".join(USER % ("u%d" % number, "secret", ".*") for number in range(20)))
    broker = Broker(Limits(password_rounds=10))
    said = []
    reading = reload.Reload(broker, str(path), config.read_at_start(""), [], lambda sentence, level=0: said.append(sentence))
    steps = 1
    while not reading.step():
        assert list(broker.access.users) == ["guest"] and len(reading.made) == steps
        steps += 1
    assert steps == 21 and len(broker.access.users) == 20 and "guest" not in broker.access.users
    assert len(said) == 1 and "20 users (20 new, 1 removed)" in said[0]
