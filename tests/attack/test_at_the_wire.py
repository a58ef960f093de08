"""Part A of ENTRIES.md at the wire of a real `leveret serve`: what one peer does, what others then see, and what the next start finds.

The unit tests of the entries look at tables; these speak octets and use nothing of the broker's, so that they also run against an earlier
tree (ENTRIES.md says how). What is slow by nature is measured in CPU time of the broker's process.
"""

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import time
from base64 import b64encode
from hashlib import sha256

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.environ.get("LEVERET_INTEROP", os.path.join(HERE, os.pardir, "interop")))

from amqp_wire import PROTOCOL_HEADER, Closed, RawClient, Typed, encode_properties, encode_table, method, publish  # noqa: E402 - after the path
from basic_calls import consume, get  # noqa: E402 - after the path
from broker_process import BrokerProcess  # noqa: E402 - after the path

PERSISTENT = {"delivery_mode": 2}
TICKS_S = os.sysconf("SC_CLK_TCK")
# A disk whose syncs take so many seconds: for all of a process, or for its Python alone; a clock that a file sets a year ahead.
SLOW_DISK = """
#include <sys/syscall.h>
#include <unistd.h>
int fdatasync(int file) { sleep(%d); return (int)syscall(SYS_fdatasync, file); }
int fsync(int file) { sleep(%d); return (int)syscall(SYS_fsync, file); }
"""
SLOW_CALLS = """
import os, time

def slow(sync):
    def call(*given):
        time.sleep(%d)
        return sync(*given)
    return call

os.fdatasync, os.fsync = slow(os.fdatasync), slow(os.fsync)
"""
YEAR_AHEAD = "import os, time\nwas = time.time\ntime.time = lambda: was() + 31536000 * os.path.exists(%r)\n"


class Served:
    """A broker on a directory; `again()` is kill -9 and the next start."""

    def __init__(self, directory, *arguments, variables=None):
        self.directory = str(directory)
        self.given = list(map(str, arguments))
        self.variables = variables
        self.clients = []
        self.start()

    def start(self):
        self.process = BrokerProcess("leveret", arguments=["--data", self.directory, *self.given], variables=self.variables)

    def connect(self, **values):
        self.clients.append(RawClient(self.process.host, self.process.port, 20).open(**values))
        return self.clients[-1]

    def again(self):
        self.process.process.kill()
        self.process.process.wait(60)
        self.process.stop()
        self.start()

    def cpu_s(self):
        with open("/proc/%d/stat" % self.process.process.pid) as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_S

    def resident(self):
        with open("/proc/%d/statm" % self.process.process.pid) as file:
            return int(file.read().split()[1]) * resource.getpagesize()

    def manage(self, **request):
        """A request to amq.leveret.management: (its answer, seconds until then)."""
        with RawClient(self.process.host, self.process.port, 40) as peer:
            peer.open()
            consume(peer, "amq.rabbitmq.reply-to", no_ack=True)
            began = time.monotonic()
            peer.publish(
                "", "amq.leveret.management", json.dumps(request).encode(), encode_properties({"reply_to": "amq.rabbitmq.reply-to"})
            )
            answer = json.loads(peer.read_content("basic.deliver").body)
            return answer, time.monotonic() - began

    def lives(self):
        """It answers, it has written no traceback."""
        assert self.process.alive(), self.process.error_text()
        self.connect().declare_queue(exclusive=True)
        assert "Traceback" not in self.process.error_text(), self.process.error_text()


@pytest.fixture
def serve(tmp_path):
    started = []

    def run(*arguments, **values):
        started.append(Served(tmp_path / "data", *arguments, **values))
        return started[-1]

    yield run
    for each in started:
        for client in each.clients:
            client.socket.close()
        each.process.stop()


def before_python(tmp_path, text):
    """The environment in which every Python runs this first."""
    folder = tmp_path / "before"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(text)
    return {"PYTHONPATH": str(folder)}


def slow_disk(tmp_path, seconds):
    """The environment in which each sync takes so many seconds: of Python, and of the C modules, which are there where a compiler is."""
    compiler = shutil.which("cc")
    if compiler is None:
        return before_python(tmp_path, SLOW_CALLS % seconds)
    source, library = tmp_path / "slow.c", tmp_path / "slow.so"
    source.write_text(SLOW_DISK % (seconds, seconds))
    subprocess.run([compiler, "-shared", "-fPIC", "-D_GNU_SOURCE", "-o", library, source], check=True, timeout=60)
    return {"LD_PRELOAD": str(library)}


def confirmed(peer, exchange, key, body, properties):
    """Publish it and see its confirm."""
    peer.publish(exchange, key, body, encode_properties(properties))
    assert peer.expect("basic.ack")["delivery_tag"] > 0


def with_dead_letters(peer, **arguments):
    """Durable queues q and dead; what dies in q goes to dead."""
    peer.declare_queue("dead", durable=True, arguments=arguments)
    letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    peer.declare_queue("q", durable=True, arguments=letters)
    peer.call("confirm.select-ok", 1, "confirm.select")


# A1


def test_a_key_that_is_no_text_expires_into_a_dead_letter_before_and_after_a_restart(serve):
    """A1 a; the lifetime is the publisher's own."""
    server = serve()
    peer = server.connect()
    with_dead_letters(peer)
    peer.call("queue.bind-ok", 1, "queue.bind", queue="q", exchange="amq.fanout", routing_key="")
    confirmed(peer, "amq.fanout", b"\xff", b"at once", dict(PERSISTENT, expiration="50"))
    confirmed(peer, "amq.fanout", b"\xff\x00\xfe", b"later", dict(PERSISTENT, expiration="3000"))
    peer.wait_for_count("dead", 1)
    server.lives()
    server.again()
    peer = server.connect()
    peer.wait_for_count("dead", 2)
    server.lives()
    assert [get(peer, "dead").body for _ in range(2)] == [b"at once", b"later"]


COUNTS = (Typed("l", (1 << 63) - 1), Typed("l", -(1 << 63)), Typed("S", "one"), Typed("d", 1e308), Typed("V", None))


@pytest.mark.parametrize("how", ["expired", "rejected"])
def test_a_publishers_own_history_of_deaths_harms_nobody(serve, how):
    """A1 b: the message is a dead letter, nobody is closed for it, the next start has it."""
    server = serve()
    peer = server.connect()
    with_dead_letters(peer)
    for number, count in enumerate(COUNTS):
        headers = {"x-death": [{"queue": "q", "reason": how, "count": count}]}
        given = dict(PERSISTENT, expiration="50") if how == "expired" else PERSISTENT
        confirmed(peer, "", "q", b"%d" % number, dict(given, headers=headers))
        if how == "rejected":
            peer.wait_for_count("q", 1)
            peer.send(method(1, "basic.reject", delivery_tag=get(peer, "q", no_ack=False)["delivery_tag"]))
        peer.wait_for_count("dead", number + 1)
    server.lives()
    server.again()
    peer = server.connect()
    assert [get(peer, "dead").body for _ in COUNTS] == [b"%d" % number for number in range(len(COUNTS))]
    server.lives()


def test_a_lifetime_at_any_end_of_its_range_leaks_nothing(serve):
    """A1 c: on the target of a dead letter. Refused with 406, or the dead letter is there."""
    server = serve()
    peer = server.connect()
    for lifetime in (1 << 30, 1 << 31, 315360000000, 1 << 41, 1 << 62):
        peer.send(method(1, "queue.declare", queue="dead", durable=True, arguments={"x-message-ttl": lifetime}))
        answer = peer.read_frame()
        if answer.name == "channel.close":
            assert answer["reply_code"] == 406 and lifetime > 315360000000, answer
            peer = server.connect()
            continue
        with_dead_letters(peer, **{"x-message-ttl": lifetime})
        used = server.manage(request="overview")[0]["overview"]["memory"]
        for number in range(20):
            confirmed(peer, "", "q", b"%d" % number, dict(PERSISTENT, expiration="0") if number % 2 else PERSISTENT)
        for _ in range(10):
            peer.send(method(1, "basic.reject", delivery_tag=get(peer, "q", no_ack=False)["delivery_tag"]))
        peer.wait_for_count("dead", 20)
        server.lives()
        peer.call("queue.purge-ok", 1, "queue.purge", queue="dead")
        assert server.manage(request="overview")[0]["overview"]["memory"] == used
        peer.call("queue.delete-ok", 1, "queue.delete", queue="dead")
    server.again()
    server.lives()


# A2, A3


def test_a_policy_that_is_refused_is_not_there_at_the_next_start(serve):
    """A2."""
    server = serve()
    peer = server.connect()
    with_dead_letters(peer)
    confirmed(peer, "", "q", b"kept", PERSISTENT)
    for definition in ({"message-ttl": 1 << 62}, {"expires": 1 << 62}, {"max-length": -1}, {"delivery-limit": "x"}):
        answer, _ = server.manage(request="set-policy", name="p", pattern=".*", definition=definition)
        assert not answer["ok"], (definition, answer)
    server.again()
    server.lives()
    told, _ = server.manage(request="definitions")
    assert told["ok"] and not told["items"].get("policies"), told
    assert get(server.connect(), "q").body == b"kept"


USER = {
    "name": "u",
    "password_hash": "c2FsdEQbS0OQwuzkLi9Dp4RbWhUYdK1P+yH+GHqB3uhCrDpz",
    "hashing_algorithm": "rabbit_password_hashing_sha256",
    "tags": "",
}


def test_no_answer_of_management_comes_before_its_change_is_on_the_disk(serve, tmp_path):
    """A3: a disk whose every sync takes a second; import, set-policy, remove-user."""
    definitions = {"users": [USER], "permissions": [{"user": "u", "vhost": "/", "configure": "", "write": "", "read": ""}]}
    server = serve(variables=slow_disk(tmp_path, 1))
    for request in (
        {"request": "import", "definitions": definitions},
        {"request": "set-policy", "name": "p", "pattern": "x", "definition": {"max-length": 5}},
        {"request": "remove-policy", "name": "p"},
        {"request": "remove-user", "name": "u"},
    ):
        answer, seconds = server.manage(**request)
        assert answer["ok"] and seconds >= 0.9, (request, answer, seconds)


# A4


@pytest.mark.parametrize("how", ["missing", "empty"])
@pytest.mark.parametrize("which", ["first", "middle", "last"])
def test_a_segment_that_is_gone_is_told_and_nothing_else_is_deleted(serve, which, how):
    """A4: `log check` says so and is 1; so does the start; the octets of the other segments are on the disk after it."""
    server = serve("--segment-size", "64K")
    peer = server.connect()
    peer.declare_queue("q", durable=True)
    peer.call("confirm.select-ok", 1, "confirm.select")
    for number in range(60):
        confirmed(peer, "", "q", b"body-%03d" % number + bytes(9000), PERSISTENT)
    server.process.process.kill()
    server.process.process.wait(60)
    segments = sorted(each for each in os.listdir(server.directory) if each[:8].isdigit() and each.endswith(".log"))
    assert len(segments) > 5
    chosen = os.path.join(server.directory, segments[{"first": 0, "middle": 3, "last": -1}[which]])
    with open(chosen, "rb") as file:
        lost = file.read()
    os.remove(chosen)
    if how == "empty":
        open(chosen, "wb").close()
    check = subprocess.run(
        [sys.executable, "-m", "leveret.tools.cli", "log", "check", server.directory], capture_output=True, text=True, timeout=60
    )
    number = str(int(os.path.basename(chosen)[:8]))
    assert check.returncode == 1 and "segment %s is %s" % (number, how) in check.stdout + check.stderr, (check.stdout, check.stderr)
    server.process.stop()
    server.start()
    server.lives()
    assert "segment %s is %s" % (number, how) in server.process.error_text(), server.process.error_text()
    kept = b""
    for name in os.listdir(server.directory):
        with open(os.path.join(server.directory, name), "rb") as file:
            kept += file.read()
    assert [number for number in range(60) if b"body-%03d" % number not in kept and b"body-%03d" % number not in lost] == []


def test_a_stray_file_stops_no_start(serve):
    """A4: 0.log."""
    server = serve()
    with open(os.path.join(server.directory, "0.log"), "w") as file:
        file.write("of another program")
    server.again()
    server.lives()


# A5


def test_names_of_publishers_and_windows_of_duplicates_have_an_end(serve):
    """A5: 3,200 publishers with names of 20,000 octets, and 760 queues that would each remember 100,000 messages."""
    server = serve()
    peer = server.connect()
    began = server.resident()
    for number in range(760):
        peer.declare_queue("d%d" % number, arguments={"x-deduplication": 100000})
    windows = server.resident() - began
    for stream in range(4):
        peer.declare_queue("s%d" % stream, durable=True, arguments={"x-queue-type": "stream", "x-max-length-bytes": 100000})
        for number in range(800):
            headers = {"x-publisher-id": "%020000d" % number, "x-publisher-sequence": 1}
            peer.publish("", "s%d" % stream, b"", encode_properties({"headers": headers}))
        peer.declare_queue("s%d" % stream, durable=True, passive=True)
    names = server.resident() - began - windows
    server.lives()
    assert (windows < 60 << 20, names < 32 << 20) == (True, True), (windows, names)


# A6: what a peer may ask for takes CPU time that grows with it, not with its square


def cpu_of(server, scene):
    """Seconds of CPU in the broker from before the scene until its end."""
    began = server.cpu_s()
    scene()
    return server.cpu_s() - began


def test_groups_cost_what_they_have(serve):
    server = serve()
    peer = server.connect()
    peer.declare_queue("q", arguments={"x-group-key": "g"})
    consume(peer, "q")

    def scene():
        for number in range(0, 2000, 100):
            peer.send(b"".join(publish(1, "", "q", b"", encode_properties({"headers": {"g": one}})) for one in range(number, number + 100)))
            for _ in range(100):
                peer.read_content("basic.deliver")

    assert cpu_of(server, scene) < 2.5


def test_a_matcher_takes_no_longer_than_its_text(serve):
    server = serve()
    peer = server.connect()
    queue = peer.declare_queue(exclusive=True)
    peer.call("exchange.declare-ok", 1, "exchange.declare", exchange="m", type="x-matcher")
    pattern = "*" + "a" * 3800 + "b*"
    peer.send(method(1, "queue.bind", queue=queue, exchange="m", routing_key="", arguments={"x-match": "all", "h": pattern}))
    if peer.read_frame().name == "channel.close":
        server.lives()
        return

    def scene():
        peer.publish("m", "", b"", encode_properties({"headers": {"h": "a" * 25000}}))
        peer.declare_queue(exclusive=True)

    assert cpu_of(server, scene) < 0.7


@pytest.mark.parametrize("where", ["permission", "policy"])
def test_a_pattern_of_a_person_takes_no_longer_than_its_text(serve, where):
    server = serve()
    if where == "permission":
        definitions = {
            "users": [dict(USER, tags="administrator")],
            "permissions": [{"user": "guest", "vhost": "/", "configure": "^(a+)+$|^z", "write": ".*", "read": ".*"}],
        }
        answer, _ = server.manage(request="import", definitions=definitions)
    else:
        answer, _ = server.manage(request="set-policy", name="p", pattern="^(a+)+$", definition={"max-length": 5})
    assert answer["ok"], answer
    peer = server.connect()

    def scene():
        peer.send(method(1, "queue.declare", queue="a" * 25 + "!", exclusive=True))
        peer.read_frame()

    assert cpu_of(server, scene) < 0.5


def test_acknowledgements_cost_the_same_in_any_order(serve):
    server = serve()
    peer = server.connect()
    peer.declare_queue("q")
    count = 60000
    for _ in range(0, count, 1000):
        peer.send(publish(1, "", "q", b"") * 1000)
    peer.wait_for_count("q", count)
    consume(peer, "q")
    for _ in range(count):
        peer.read_content("basic.deliver")
    tags = list(range(1, count + 1))
    random.Random(1).shuffle(tags)

    def scene():
        for at in range(0, count, 1000):
            peer.send(b"".join(method(1, "basic.ack", delivery_tag=tag) for tag in tags[at : at + 1000]))
        peer.declare_queue(exclusive=True)

    assert cpu_of(server, scene) < 1.0


def test_a_headers_exchange_looks_where_it_may_fit(serve):
    server = serve()
    peer = server.connect()
    peer.declare_queue("q")
    shared = {"x-match": "all", "kind": "reading", "site": "north", "unit": "celsius"}
    for number in range(12000):
        arguments = dict(shared, n=number)
        peer.send(method(1, "queue.bind", queue="q", exchange="amq.headers", routing_key="", arguments=arguments, no_wait=True))
    peer.declare_queue("q", passive=True)

    def scene():
        headers = encode_properties({"headers": dict(shared, n=7)})
        peer.send(publish(1, "amq.headers", "", b"", headers) * 50)
        peer.wait_for_count("q", 50)

    assert cpu_of(server, scene) < 0.4


# A7


def log_in(server, password):
    """What is said to a log-in as u; the guesser has an account of its own, and uses it before each."""
    server.connect().close()
    with RawClient(server.process.host, server.process.port, 20) as guess:
        try:
            return guess.log_in("u", password).name
        except Closed:
            return "connection.close"


def test_a_good_log_in_forgives_no_guesses_at_another_user(serve):
    """A7: behind 10 wrong passwords (login_user_failure_max) the right one is not looked at either."""
    server = serve()
    stored = b64encode(b"salt" + sha256(b"salt" + b"right").digest()).decode()
    answer, _ = server.manage(request="import", definitions={"users": [dict(USER, password_hash=stored)]})
    assert answer["ok"], answer
    assert log_in(server, "right") == "connection.tune"
    assert [log_in(server, "wrong") for _ in range(10)] == ["connection.close"] * 10
    assert log_in(server, "right") == "connection.close"


def test_files_are_private_where_the_directory_is_not(serve, tmp_path):
    """A7: a directory that was 0755 before; a damaged end that is put aside."""
    directory = tmp_path / "data"
    directory.mkdir(mode=0o755)
    os.chmod(directory, 0o755)
    server = serve()
    peer = server.connect()
    peer.declare_queue("q", durable=True)
    peer.call("confirm.select-ok", 1, "confirm.select")
    for _ in range(3):
        confirmed(peer, "", "q", b"secret", PERSISTENT)
    server.process.process.kill()
    server.process.process.wait(60)
    segment = sorted(each for each in os.listdir(directory) if each[:8].isdigit() and each.endswith(".log"))[-1]
    octets = bytearray((directory / segment).read_bytes().rstrip(b"\0"))
    octets[-3] ^= 0xFF
    (directory / segment).write_bytes(octets)
    server.process.stop()
    server.start()
    found = {name: oct((directory / name).stat().st_mode & 0o777) for name in os.listdir(directory)}
    assert any("damaged" in name for name in found), found
    assert set(found.values()) == {oct(0o600)}, found


def test_a_clock_that_jumps_a_year_ends_no_lifetime(serve, tmp_path):
    """A7: 24 days; a gateway without a clock until NTP comes."""
    flag = tmp_path / "ahead"
    server = serve(variables=before_python(tmp_path, YEAR_AHEAD % str(flag)))
    peer = server.connect()
    peer.declare_queue("q", durable=True, arguments={"x-message-ttl": 24 * 86400000})
    peer.call("confirm.select-ok", 1, "confirm.select")
    confirmed(peer, "", "q", b"stays", PERSISTENT)
    flag.touch()
    time.sleep(2)
    assert get(peer, "q") is not None


# A8


def test_silent_connections_keep_nobody_out(serve, tmp_path):
    """A8: as many as there are places, and half of them say the header."""
    path = tmp_path / "leveret.toml"
    path.write_text("[limits]\nconnection_count_max = 20\n")
    server = serve("--config", path)
    silent = [RawClient(server.process.host, server.process.port) for _ in range(30)]
    for peer in silent[::2]:
        peer.send(PROTOCOL_HEADER)
    for _ in range(10):
        server.connect().declare_queue(exclusive=True)
    for peer in silent:
        peer.socket.close()


def test_no_content_header_is_larger_than_was_negotiated(serve):
    """A8: the broker closes the channel in words, and the message is there for others."""
    server = serve()
    wide, narrow = server.connect(), server.connect(frame_max=4096)
    wide.declare_queue("q")
    wide.publish("", "q", b"wide", b"\x20\x00" + encode_table({"h": "x" * 30000}))
    wide.wait_for_count("q", 1)
    narrow.send(method(1, "basic.consume", queue="q"))
    narrow.expect("basic.consume-ok")
    narrow.expect_channel_close(406)
    assert get(wide, "q").body == b"wide"
    server.lives()
