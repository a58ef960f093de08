"""SIGHUP: a running broker reads users, permissions and policies of its configuration file anew, and says what it does not read."""

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
    assert "2 users (1 new, 1 removed)" in told and "listeners, limits, data and bridges are read at a start only" in told
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
