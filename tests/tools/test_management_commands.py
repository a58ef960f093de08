"""`leveret status`, `leveret definitions`, `leveret serve --definitions` and [[policy]]: what they print, and their mistakes."""

import json
import os
import re
import subprocess
import sys
import time
from types import SimpleNamespace

import pika
import pytest
from test_serve import refused, serve  # noqa: F401 - serve is a fixture

from leveret.tools import bridge as bridge_command
from leveret.tools import config, definitions
from leveret.tools.cable import Cable
from leveret.tools.usage import UsageError

DEFINITIONS = {
    "vhosts": [{"name": "/"}, {"name": "x"}],
    "queues": [
        {"name": "q %d" % number, "vhost": "/", "durable": True, "auto_delete": False, "arguments": {"x-max-length": number + 1}}
        for number in range(700)
    ],
    "exchanges": [{"name": "e", "vhost": "/", "type": "topic", "durable": True, "auto_delete": False, "internal": False, "arguments": {}}],
    "bindings": [{"source": "e", "vhost": "/", "destination": "q 1", "destination_type": "queue", "routing_key": "a.#", "arguments": {}}],
}


def command(*arguments, given=None):
    """(status, standard output, standard error)."""
    done = subprocess.run([sys.executable, "-m", "leveret.tools.cli", *arguments], capture_output=True, text=True, timeout=300, input=given)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout, done.stderr


def url_of(server):
    return server.urls[0].replace("amqp://", "amqp://guest:guest@")


def test_seven_hundred_queues_go_in_and_come_out_in_pages(serve, tmp_path):  # noqa: F811 - a fixture
    server = serve("--listen", "amqp://127.0.0.1:0")
    status, output, told = command("definitions", "import", "--to", url_of(server), "-", given=json.dumps(DEFINITIONS))
    assert (status, output) == (0, "loaded 0 users, 0 permissions, 0 policies, 1 exchanges, 700 queues, 1 bindings\n")
    assert told == "leveret definitions: vhosts: 1 left out ('x'): this broker has one virtual host, and '/' was chosen (--vhost)\n"
    path = str(tmp_path / "out.json")
    assert command("definitions", "export", "--from", url_of(server), path) == (0, "", "")
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    assert [dict(each, type=None) for each in document["queues"]] == sorted(
        [dict(each, type=None) for each in DEFINITIONS["queues"]], key=lambda each: each["name"]
    )
    assert document["bindings"] == DEFINITIONS["bindings"] and document["exchanges"] == DEFINITIONS["exchanges"]
    again = serve("--listen", "amqp://127.0.0.1:0", "--definitions", path)
    assert command("definitions", "export", "--from", url_of(again), "-")[1] == open(path, encoding="utf-8").read()


def test_status_has_one_fact_a_line(serve):  # noqa: F811 - a fixture
    server = serve("--listen", "amqp://127.0.0.1:0")
    connection = server.connect()
    channel = connection.channel()
    channel.queue_declare("a queue")
    channel.queue_declare("s", durable=True, arguments={"x-queue-type": "stream"})
    for key in ("a queue", "s", "nowhere"):
        channel.basic_publish("", key, b"12345")
    channel.queue_declare("a queue")
    status, output, told = command("status", url_of(server))
    lines = output.splitlines()
    assert (status, told) == (0, "") and lines[0].startswith("product Leveret ")
    assert 'queue "a queue" messages 1 unsettled 0 octets 5 consumers 0 full no policy - type classic' in lines
    assert 'virtual_host "/"' in lines
    assert any(line.startswith('stream "s" first_offset 0 next_offset 1 octets 10 ') for line in lines), output
    assert "counter unroutable 1" in lines and "total queues 3" in lines and "memory messages_used 3" in lines
    assert sum(line.startswith("connection ") for line in lines) == 2
    known = ("product", "virtual_host", "uptime_ms", "publishers", "memory", "total", "counter", "queue", "stream", "connection")
    assert all(line.split(" ")[0] in known for line in lines)
    connection.close()


def test_list_has_a_table_with_a_head_and_json(serve, tmp_path):  # noqa: F811 - a fixture
    document = {
        "exchanges": [dict(DEFINITIONS["exchanges"][0], arguments={"alternate-exchange": "amq.fanout"})],
        "queues": [dict(DEFINITIONS["queues"][1], name=name) for name in ("b", "a b")],
        "bindings": [dict(DEFINITIONS["bindings"][0], destination="a b")],
        "policies": [{"name": "p", "vhost": "/", "pattern": "^b$", "apply-to": "queues", "definition": {"max-length": 9}, "priority": 2}],
    }
    path = tmp_path / "definitions.json"
    path.write_text(json.dumps(document))
    server = serve("--listen", "amqp://127.0.0.1:0", "--definitions", str(path))
    connection = server.connect()
    connection.channel().basic_publish("e", "a.1", b"12345")
    for what, rows in (
        (
            "queues",
            [
                ["name", "messages", "unsettled", "octets", "consumers", "full", "policy", "type"],
                ['"a b"', "1", "0", "5", "0", "no", "-", "classic"],
                ["b", "0", "0", "0", "0", "no", "p", "classic"],
            ],
        ),
        (
            "exchanges",
            [
                ["name", "type", "durable", "auto_delete", "internal", "arguments"],
                ["e", "topic", "yes", "no", "no", '{"alternate-exchange":"amq.fanout"}'],
            ],
        ),
        ("policies", [["name", "pattern", "apply-to", "priority", "definition"], ["p", "^b$", "queues", "2", '{"max-length":9}']]),
        ("users", [["name", "tags"]]),
    ):
        status, output, told = command("list", what, url_of(server))
        lines = output.splitlines()
        assert (status, [re.split("  +", line) for line in lines]) == (0, rows), output
        starts = [[line.index(cell) for cell in row] for line, row in zip(lines, rows)]
        assert all(each[:2] == starts[0][:2] for each in starts), "columns stand below each other"
        assert bool(told) == (what == "users")
    status, output, _ = command("list", "bindings", url_of(server), "--json")
    wanted = {"source": "e", "destination_type": "queue", "destination": "a b", "routing_key": "a.#", "arguments": {}}
    assert (status, json.loads(output)) == (0, [wanted])
    status, output, _ = command("status", url_of(server), "--json")
    told = json.loads(output)
    assert status == 0 and told["overview"]["product"] == "Leveret" and told["counters"]["published"] >= 1
    assert [each["user"] for each in told["connections"]] == ["guest", "guest"] and {"b", "a b"} < {each["name"] for each in told["queues"]}
    connection.close()
    assert command("list", "queues", "amqp://guest:guest@127.0.0.1:1/")[0] == 1


def test_status_over_a_serial_line(serve):  # noqa: F811 - a fixture
    cable = Cable()
    try:
        serve("--listen", f"serial://{cable.ends[0]}?baud=115200")
        status, output, told = command("status", f"serial://{cable.ends[1]}?baud=115200")
        assert status == 0 and output.startswith("product Leveret "), told
    finally:
        cable.close()


def test_status_over_a_serial_line_as_a_user(serve, tmp_path):  # noqa: F811 - a fixture
    """RFC 3986 section 3.2.1 (userinfo) and 2.1; a wrong password is connection.close 403 (authentication_failure_close)."""
    path = tmp_path / "users.toml"
    path.write_text('[[user]]\nname = "w/x"\npassword = "p@s/ é:%"\ntags = ["monitoring"]\nconfigure = ".*"\nwrite = ".*"\nread = ".*"\n')
    cable = Cable()
    try:
        serve("--listen", f"serial://{cable.ends[0]}?baud=115200", "--config", str(path))
        place = f"{cable.ends[1]}?baud=115200"
        status, output, told = command("status", f"serial://w%2Fx:p%40s%2F%20%C3%A9:%25@{place}")
        assert status == 0 and 'user "w/x" state' in output, told
        for login in ("w%2Fx:secret@", "secret:p@", ""):
            status, output, told = command("status", f"serial://{login}{place}")
            assert (status, output) == (1, "") and told.count("\n") == 1 and "refuses the log-in: 403 " in told, told
            assert f"serial://{place}" in told and "secret" not in told
    finally:
        cable.close()


def test_what_goes_wrong_is_one_sentence(serve, tmp_path):  # noqa: F811 - a fixture
    server = serve("--listen", "amqp://127.0.0.1:0")
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"queues": 5}')
    for arguments, status, word in (
        (("status", "amqp://127.0.0.1:1/"), 1, "no broker answers"),
        (("status", url_of(server).replace("guest:guest", "guest:secret")), 1, "refuses the log-in"),
        (("status", "http://x"), 1, "amqp://"),
        (("definitions", "import", "--to", url_of(server), str(wrong)), 2, "'queues' of definitions must be a list"),
        (("definitions", "import", "--to", url_of(server), str(tmp_path / "absent")), 2, "No such file"),
        (("definitions", "export", "--from", url_of(server), str(tmp_path / "no" / "out.json")), 2, "No such file"),
        (("definitions", "export", "--from", "amqp://127.0.0.1:1/", "-"), 1, "no broker answers"),
    ):
        found, output, told = command(*arguments)
        assert (found, output) == (status, "") and told.count("\n") == 1 and word in told, (arguments, found, told)
        assert "secret" not in told
    assert os.listdir(tmp_path) == ["wrong.json"]


def test_a_user_without_a_tag_is_told_so(serve, tmp_path):  # noqa: F811 - a fixture
    path = tmp_path / "users.toml"
    path.write_text('[[user]]\nname = "plain"\npassword = "p"\nconfigure = ".*"\nwrite = ".*"\nread = ".*"\n')
    server = serve("--listen", "amqp://127.0.0.1:0", "--config", str(path))
    status, _, told = command("status", server.urls[0].replace("amqp://", "amqp://plain:p@"))
    assert status == 1 and "403" in told and "needs the tag" in told


def test_policies_of_the_configuration_apply(serve, tmp_path):  # noqa: F811 - a fixture
    path = tmp_path / "policies.toml"
    path.write_text('[[policy]]\nname = "short"\npattern = "^s"\ndefinition = { max-length = 2 }\npriority = 3\napply-to = "queues"\n')
    server = serve("--listen", "amqp://127.0.0.1:0", "--config", str(path))
    connection = server.connect()
    channel = connection.channel()
    channel.queue_declare("sensor")
    for _ in range(5):
        channel.basic_publish("", "sensor", b"x")
    assert channel.queue_declare("sensor").method.message_count == 2
    assert 'policy "short"' in command("status", url_of(server))[1]
    connection.close()


@pytest.mark.parametrize(
    "text, word",
    [
        ("policy = 5", "[[policy]]"),
        ('[[policy]]\nname = "p"', "a pattern"),
        ('[[policy]]\nname = "p"\npattern = "("\ndefinition = {max-length = 1}', "regular expression"),
        ('[[policy]]\nname = "p"\npattern = ""', "definition"),
        ('[[policy]]\nname = "p"\npattern = ""\ndefinition = {ha-mode = "all"}', "ha-mode"),
        ('[[policy]]\nname = "p"\npattern = ""\ndefinition = {max-length = -1}', "max-length"),
        ('[[policy]]\nname = "p"\npattern = ""\ndefinition = {max-lngth = 1}', "policy 'p': "),
        ('[[policy]]\nname = "p"\npattern = ""\ndefinition = {max-length = 1}\ncolour = 1', "colour"),
        ('[[policy]]\nname = "p"\npattern = ""\ndefinition = {max-length = 1}\napply-to = "some"', "apply-to"),
    ],
)
def test_a_wrong_policy_is_one_sentence(tmp_path, text, word):
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match="wrong.toml") as caught:
        config.policies(str(path))
    assert word in str(caught.value) and "\n" not in str(caught.value)


def test_definitions_that_are_none_do_not_start(tmp_path):
    path = tmp_path / "wrong.json"
    path.write_text("[]")
    status, told = refused("--listen", "amqp://127.0.0.1:0", "--definitions", str(path))
    assert status == 2 and "does not hold definitions" in told


def test_items_are_cut_into_portions_that_fit():
    items = [{"name": "x" * size} for size in (10, 10, 10, 500, 10)]
    sentences = []
    found = list(definitions.portions("queues", items, 70, sentences))
    assert [len(portion) for portion in found] == [2, 2] and len(sentences) == 1 and "the broker takes 70" in sentences[0]


def test_the_virtual_host_has_the_name_and_the_aliases_of_the_configuration(serve, tmp_path):  # noqa: F811 - a fixture
    """Clients, status, definitions and a bridge of the file come by it; the file's own definitions are those of its name."""
    config_path, given, out = tmp_path / "named.toml", tmp_path / "given.json", tmp_path / "out.json"
    config_path.write_text('vhost = "/production"\nvhost_aliases = ["prod"]\n')
    given.write_text(json.dumps({"queues": [{"name": "a", "vhost": "/production"}, {"name": "b", "vhost": "/"}, {"name": "c"}]}))
    server = serve("--listen", "amqp://127.0.0.1:0", "--config", str(config_path), "--definitions", str(given))
    url = url_of(server).rstrip("/") + "/%2Fproduction"
    lines = command("status", url)[1].splitlines()
    assert 'virtual_host "/production"' in lines
    assert [line.split(" ")[1] for line in lines if line.startswith("queue ") and "reply-to" not in line] == ['"a"', '"c"']
    assert command("status", url_of(server).rstrip("/") + "/prod")[0] == 0
    status, _, told = command("status", url_of(server))
    assert status == 1 and "vhost / not found" in told
    assert command("definitions", "export", "--from", url, str(out))[0] == 0
    document = json.loads(out.read_text())
    assert document["vhosts"] == [{"name": "/production"}] and {each["vhost"] for each in document["queues"]} == {"/production"}


def test_definitions_of_a_chosen_virtual_host(serve, tmp_path):  # noqa: F811 - a fixture
    """--vhost NAME of `serve --definitions` and of `definitions import`: whose are taken, whatever the broker's own is called."""
    given = tmp_path / "given.json"
    given.write_text(
        json.dumps({"vhosts": [{"name": "/"}, {"name": "x"}], "queues": [{"name": "a", "vhost": "x"}, {"name": "b", "vhost": "/"}]})
    )
    server = serve("--listen", "amqp://127.0.0.1:0", "--definitions", str(given), "--vhost", "x")
    assert [line for line in command("status", url_of(server))[1].splitlines() if line.startswith('queue "a"')]
    other = serve("--listen", "amqp://127.0.0.1:0")
    status, output, told = command("definitions", "import", "--to", url_of(other), "--vhost", "x", str(given))
    assert (status, output) == (0, "loaded 0 users, 0 permissions, 0 policies, 0 exchanges, 1 queues, 0 bindings\n"), told
    assert "queues: 1 of vhost '/' left out" in told
    status, output, told = command("definitions", "import", "--to", url_of(other), "--vhost", "y", str(given))
    assert (status, output) == (2, "") and "no definitions of virtual host 'y'; it has those of '/', 'x'" in told
    status, told = refused("--vhost", "x")
    assert status == 2 and "--vhost says whose of the --definitions" in told


def named(tmp_path, name, more=""):
    """The configuration file of a broker whose virtual host has this name."""
    path = tmp_path / f"{name}.toml"
    path.write_text(f'vhost = "/{name}"\n{more}')
    return str(path)


def channel_in(server, virtual_host):
    parameters = pika.ConnectionParameters("127.0.0.1", server.port, virtual_host)
    return pika.BlockingConnection(parameters).channel()


def test_bridges_come_to_virtual_hosts_by_their_names(serve, tmp_path):  # noqa: F811 - a fixture
    """Inside of the broker, and to the upstream that a URL names; as a process of its own by the file of the broker."""
    upstream = serve("--listen", "amqp://127.0.0.1:0", "--config", named(tmp_path, "up"))
    above = channel_in(upstream, "/up")
    above.queue_declare("arrived")
    bridge = (
        f'[[bridge]]\nname = "uplink"\ngateway = "g"\nqueue = "readings"\nexchange = ""\nrouting_key = "arrived"\n'
        f'upstream = ["{url_of(upstream).rstrip("/")}/%2Fup"]\n'
    )
    gateway = serve("--listen", "amqp://127.0.0.1:0", "--config", named(tmp_path, "gateway", bridge))
    below = channel_in(gateway, "/gateway")
    below.queue_declare("readings")
    below.basic_publish("", "readings", b"reading")
    deadline = time.monotonic() + 60
    while above.basic_get("arrived", auto_ack=True)[2] != b"reading":
        assert time.monotonic() < deadline, gateway.end()[2]
        time.sleep(0.1)
    for channel in (above, below):
        channel.connection.close()
    for more, port in (('listen = ["amqp://127.0.0.1:5999"]\n', 5999), ("", 5672)):
        options = SimpleNamespace(source=None, config=named(tmp_path, "a b", more))
        assert bridge_command.source_of(options) == f"amqp://guest:guest@127.0.0.1:{port}/%2Fa%20b"


def test_branches_of_a_broker_that_has_none(serve):  # noqa: F811 - a fixture
    server = serve("--listen", "amqp://127.0.0.1:0")
    assert command("branches", "list", "--of", url_of(server)) == (0, "", "")
    status, output, told = command("branches", "commit", "--of", url_of(server), "1:00:00")
    assert (status, output) == (1, "") and told.startswith("leveret branches: ")
