"""The commands that change a running broker: declare, delete, bind, publish, get, purge, close, users, policy, drain, top, doctor."""

import io
import json
import os
import re
import subprocess
import sys
import time

import pika
import pika.exceptions
import pytest
from test_management_commands import url_of
from test_serve import Serve

from leveret.core.access.passwords import hashed
from leveret.core.version import VERSION
from leveret.tools import cli

FULL_RIGHTS = 'configure = ".*"\nwrite = ".*"\nread = ".*"\n'


@pytest.fixture(scope="module")
def broker():
    server = Serve("--listen", "amqp://127.0.0.1:0")
    yield server
    assert server.end()[0] == 0


@pytest.fixture
def leveret(broker, capsys):
    """Runs a command on the broker: (exit status, standard output, standard error)."""

    def run(*arguments, url=None):
        try:
            status = cli.main([*arguments, url or url_of(broker)])
        except SystemExit as error:
            status = error.code
        output = capsys.readouterr()
        return status, output.out, output.err

    return run


def test_a_queue_is_made_bound_published_to_looked_at_and_deleted(leveret):
    done = (0, "", "")
    assert leveret("declare", "queue", "q 1", "--argument", "x-max-length=1000", "-a", "x-overflow=reject-publish") == done
    assert leveret("declare", "queue", "q 1", "-a", "x-max-length=1000", "-a", "x-overflow=reject-publish") == done
    status, _, told = leveret("declare", "queue", "q 1", "--transient")
    assert status == 1 and told.startswith("leveret declare: PRECONDITION_FAILED - inequivalent arg 'durable'")
    assert leveret("declare", "exchange", "e", "--type", "topic") == done
    assert leveret("bind", "e", "q 1", "--key", "a.#") == done
    assert (
        leveret("publish", "e", "a.b", "--body", "21.5", "--property", "content-type=text/plain", "--header", "n=3", "--count", "3") == done
    )
    status, _, told = leveret("publish", "e", "b", "--body", "x")
    assert status == 1 and "no queue for routing key 'b' of exchange 'e'" in told
    for _ in range(2):  # looking changes nothing
        status, output, _ = leveret("get", "q 1", "--json", "--count", "2")
        rows = [json.loads(line) for line in output.splitlines()]
        assert status == 0 and [row["message_count"] for row in rows] == [2, 1] and not rows[0]["redelivered"]
        assert (rows[0]["payload"], rows[0]["properties"]) == ("21.5", {"content_type": "text/plain", "headers": {"n": 3}})
    status, output, _ = leveret("get", "q 1", "--take")
    assert (status, output.splitlines()[1]) == (0, "21.5") and 'exchange "e" routing_key "a.b"' in output
    assert leveret("purge", "q 1") == (0, "2 messages purged\n", "")
    assert leveret("get", "q 1", "--take")[:2] == (0, "")
    assert leveret("delete", "queue", "q 1", "--if-empty") == (0, "deleted with 0 messages\n", "")
    assert leveret("delete", "queue", "q 1") == (1, "", "leveret delete: NOT_FOUND - no queue 'q 1' in vhost '/'\n")
    assert leveret("delete", "exchange", "e") == done
    assert leveret("delete", "exchange", "e")[0] == 1


def test_an_exchange_is_bound_to_an_exchange(leveret):
    leveret("declare", "exchange", "here", "--type", "fanout", "--internal")
    assert leveret("bind", "amq.direct", "here", "--to-exchange", "--key", "k", "-a", "x=1") == (0, "", "")
    assert '{"x":1}' in leveret("list", "bindings")[1]
    assert leveret("unbind", "amq.direct", "here", "--to-exchange", "--key", "k", "-a", "x=1") == (0, "", "")
    assert "here" not in leveret("list", "bindings")[1]
    assert leveret("bind", "amq.direct", "nowhere")[0] == 1
    leveret("delete", "exchange", "here")


def test_bodies_of_any_octets_come_in_from_files_and_out_again(leveret, tmp_path):
    path = tmp_path / "body"
    path.write_bytes(bytes(range(256)) * 400)
    leveret("declare", "queue", "octets")
    assert leveret("publish", "", "octets", "--file", str(path))[0] == 0
    looked = leveret("get", "octets")[1]
    assert "payload_bytes 102400" in looked and "(the first 16384 octets)" in looked and "\nbase64 AAECAw" in looked
    taken = json.loads(leveret("get", "octets", "--take", "--json")[1])
    assert taken["payload_encoding"] == "base64" and len(taken["payload"]) == 4 * -(-102400 // 3)
    leveret("declare", "queue", "s", "--type", "stream")
    assert "NOT_IMPLEMENTED" in leveret("get", "s", "--take")[2] and leveret("get", "s")[0] == 1
    for name in ("octets", "s"):
        leveret("delete", "queue", name)


def test_users_come_get_rights_and_go(leveret, broker, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("secret\n"))
    assert leveret("users", "add", "bob", "--tags", "monitoring, management") == (0, "", "")
    assert "there is a user 'bob' already" in leveret("users", "add", "bob", "--password-hash", "x")[2]
    bob = url_of(broker).replace("guest:guest", "bob:secret")
    assert leveret("status", url=bob)[0] == 1, "without permissions nobody comes in"
    assert leveret("users", "grant", "bob", "--read", "^only$", "--write", "^(only|amq.default)$", "--configure", "^only$") == (0, "", "")
    assert leveret("declare", "queue", "only", url=bob)[0] == 0
    assert leveret("declare", "queue", "other", url=bob)[0] == 1
    assert "it needs the tag administrator" in leveret("users", "list", url=bob)[2]
    rows = json.loads(leveret("users", "list", "--json")[1])
    assert rows == [
        {
            "name": "bob",
            "tags": ["monitoring", "management"],
            "configure": "^only$",
            "write": "^(only|amq.default)$",
            "read": "^only$",
            "topics": {},
            "limits": {},
        }
    ]
    assert leveret("users", "grant-topic", "bob", "amq.topic", "--write", "^{username}") == (0, "", "")
    assert leveret("users", "limit", "bob", "--connections", "3") == leveret("users", "limit", "bob", "--channels", "4") == (0, "", "")
    (row,) = json.loads(leveret("users", "list", "--json")[1])
    assert (row["topics"], row["limits"]) == ({"amq.topic": ["^{username}", ""]}, {"max-connections": 3, "max-channels": 4})
    assert leveret("users", "clear-topics", "bob") == leveret("users", "limit", "bob", "--connections", "-1") == (0, "", "")
    (row,) = json.loads(leveret("users", "list", "--json")[1])
    assert (row["topics"], row["limits"]) == ({}, {"max-channels": 4})
    assert leveret("users", "limit", "bob")[0] == 2 and "no user 'nobody'" in leveret("users", "limit", "nobody", "--channels", "1")[2]
    assert "no user 'nobody'" in leveret("users", "clear-topics", "nobody")[2]
    assert "there is no such user" in leveret("users", "grant-topic", "nobody", "amq.topic")[2]
    given = hashed("other", b"12345678", 10).text()
    assert leveret("users", "add", "bob", "--replace", "--password-hash", given) == (0, "", "")
    assert leveret("purge", "only", url=bob)[0] == 1 and leveret("purge", "only", url=bob.replace("secret", "other"))[0] == 0
    assert leveret("users", "add", "x", "--password-hash", "x")[0] == 2
    assert "there is no such user" in leveret("users", "grant", "nobody")[2]
    assert leveret("users", "remove", "bob") == (0, "", "")
    assert leveret("users", "remove", "bob")[2] == "leveret users: there is no user 'bob'\n"
    leveret("delete", "queue", "only")


def test_policies_are_set_shown_and_cleared(leveret):
    assert leveret("policy", "set", "p", "^q", '{"max-length": 5}', "--priority", "2", "--apply-to", "queues") == (0, "", "")
    row = {"name": "p", "pattern": "^q", "apply-to": "queues", "priority": 2, "definition": {"max-length": 5}}
    assert json.loads(leveret("policy", "list", "--json")[1]) == [row]
    assert leveret("policy", "list")[1].splitlines()[1] == 'p     ^q       queues    2         {"max-length":5}'
    assert leveret("policy", "set", "p", "^q", "max")[0] == 2
    assert leveret("policy", "set", "p", "^q", '{"max-lengths": 5}')[0] == 1
    assert leveret("policy", "set", "p", "^q", '{"max-length": 3}', "--operator") == (0, "", "")
    bound = {**row, "priority": 0, "definition": {"max-length": 3}}
    assert json.loads(leveret("policy", "list", "--json", "--operator")[1]) == [bound]
    assert json.loads(leveret("policy", "list", "--json")[1]) == [row]
    assert "no key 'dead-letter-exchange'" in leveret("policy", "set", "p", "^q", '{"dead-letter-exchange": "e"}', "--operator")[2]
    assert leveret("policy", "clear", "p", "--operator") == (0, "", "") and leveret("policy", "clear", "p", "--operator")[0] == 1
    assert leveret("policy", "clear", "p") == (0, "", "")
    assert leveret("policy", "clear", "p")[0] == 1


def test_connections_are_closed_with_a_reason(leveret, broker):
    for how in ("connection", "user"):
        client = broker.connect()
        rows = json.loads(leveret("list", "connections", "--json")[1])
        assert len(rows) == 2, "the client's, and the one that asks"
        name = rows[0]["name"] if how == "connection" else "guest"
        if how == "user":  # its own goes too, behind the answer or before it
            leveret("close", how, name, "--reason", "night")
        else:
            assert leveret("close", how, name, "--reason", "night") == (0, "", "")
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="night"):
            for _ in range(100):
                client.process_data_events(0.1)
    assert leveret("close", "connection", "nobody:1") == (1, "", "leveret close: there is no connection 'nobody:1'\n")


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("declare", "queue", "q", "extra"), "leveret declare: unrecognized arguments: "),
        (("publish", "", "q", "body", "more"), "unrecognized arguments: "),
        (("publish", "", "q", "body", "--body", "again"), "the body is given twice: 'body'"),
        (("publish", "", "q", "body", "--file", "/none"), "the body is given twice: 'body'"),
        (("declare", "queue"), "is no URL"),
        (("declare", "queue", "q", "--type", "odd"), "invalid choice: 'odd'"),
        (("declare", "queue", "q", "-a", "x"), "'x' is not NAME=VALUE"),
        (("publish", "", "q", "--body", "", "--property", "priority=high"), "priority is a whole number, not 'high'"),
        (("publish", "", "q", "--body", "", "--property", "colour=red"), "no property among colour"),
        (("publish", "", "q", "--file", "/none"), "/none cannot be read: No such file"),
        (("get", "q", "--count", "0"), "--count"),
        (("close", "channel", "1"), "'channel'"),
        (("top", "--seconds", "0"), "greater than 0"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_status_2(leveret, arguments, words):
    if arguments == ("declare", "queue"):
        arguments = ("declare", "queue", "q", "there")
        status, _, told = leveret(*arguments[:-1], url=arguments[-1])
    else:
        status, _, told = leveret(*arguments)
    assert status == 2 and words in told and told.count("\n") == 1, told


# Each command that asks a broker.
ASKING = """
status|list queues|list connections|top --once|declare queue q|declare exchange e|delete queue q|delete exchange e|bind amq.direct q
unbind amq.direct q|publish amq.direct k body|get q|get q --take|purge q|close connection x|close user x|users list|users remove x
users grant x|policy list|policy set p ^x {"max-length":1}|policy clear p|drain|trace on|reload|branches list
"""
ASKING = [line.split() for line in ASKING.strip().replace("\n", "|").split("|")]
RIGHTS = """
[[user]]
name = "bare"
password = "bare"
configure = ""
write = ""
read = ""
[[user]]
name = "seer"
password = "seer"
tags = ["management"]
"""


def is_refused(outcome, command, words):
    """One sentence that begins with the command, nothing on standard output, exit status 1."""
    status, output, told = outcome
    assert (status, output) == (1, "") and told.startswith(f"leveret {command}: ") and told.count("\n") == 1, outcome
    assert re.search(words, told), told


@pytest.mark.parametrize("arguments", ASKING, ids=" ".join)
def test_no_broker_is_exit_status_1(leveret, arguments):
    is_refused(leveret(*arguments, url="amqp://127.0.0.1:1"), arguments[0], "no broker answers at 127.0.0.1:1: ")


def test_who_may_not_hears_so_and_no_more(leveret, tmp_path):
    """Of every command: without permissions, without a tag, and with a wrong password."""
    (tmp_path / "leveret.toml").write_text(RIGHTS)
    server = Serve("--listen", "amqp://127.0.0.1:0", "--config", str(tmp_path / "leveret.toml"))
    try:
        for arguments in ASKING:
            outcome = leveret(*arguments, url=f"amqp://seer:seer@127.0.0.1:{server.port}")
            is_refused(outcome, arguments[0], "refuses the log-in: 530 NOT_ALLOWED - access to vhost '/' refused for user 'seer'")
            outcome = leveret(*arguments, url=f"amqp://bare:bare@127.0.0.1:{server.port}")
            is_refused(outcome, arguments[0], "refused for user 'bare'|no (queue|exchange) '[qe]'")
        outcome = leveret("status", url=f"amqp://bare:wrong@127.0.0.1:{server.port}")
        is_refused(outcome, "status", "refuses the log-in: 403 ACCESS_REFUSED")
        assert "wrong" not in outcome[2]
    finally:
        assert server.end()[0] == 0


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("bind", "amq.direct", "none"), "no queue 'none' in vhost '/'"),
        (("bind", "none", "none", "--to-exchange"), "no exchange 'none' in vhost '/'"),
        (("unbind", "amq.direct", "none"), "no queue 'none' in vhost '/'"),
        (("unbind", "none", "none"), "no exchange 'none' in vhost '/'"),
        (("delete", "queue", "none"), "no queue 'none' in vhost '/'"),
        (("delete", "exchange", "none"), "no exchange 'none' in vhost '/'"),
        (("purge", "none"), "no queue 'none' in vhost '/'"),
        (("get", "none"), "no queue 'none' in vhost '/'"),
        (("get", "none", "--take"), "no queue 'none' in vhost '/'"),
        (("publish", "none", "k", "body"), "no exchange 'none' in vhost '/'"),
        (("publish", "", "none", "body"), "no queue for routing key 'none'"),
        (("users", "remove", "none"), "there is no user 'none'"),
        (("users", "grant", "none"), "there is no such user"),
        (("policy", "clear", "none"), "'none'"),
        (("policy", "set", "p", "(", '{"max-length":1}'), "regular expression"),
        (("close", "user", "none"), "there is no connection of user 'none'"),
        (("declare", "exchange", "e", "--type", "none"), "none"),
    ],
)
def test_what_is_not_there_is_exit_status_1(leveret, arguments, words):
    is_refused(leveret(*arguments), arguments[0], re.escape(words))


def test_a_body_may_be_a_word_of_the_command_line(leveret, monkeypatch):
    """Its last two words, body and URL, may each be left out."""
    assert leveret("declare", "queue", "words") == (0, "", "")
    assert leveret("publish", "", "words", "21.5") == (0, "", "")
    assert leveret("publish", "", "words", "--body", "amqp://is.a/body") == (0, "", "")
    assert leveret("publish", "", "words", "see http://here") == (0, "", "")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"from standard input")))
    assert leveret("publish", "", "words") == (0, "", "")
    status, output, told = leveret("get", "words", "--count", "9", "--json")
    assert [json.loads(line)["payload"] for line in output.splitlines()] == [
        "21.5",
        "amqp://is.a/body",
        "see http://here",
        "from standard input",
    ]
    assert (status, told) == (0, "")
    leveret("delete", "queue", "words")


def test_an_empty_queue_is_told_of(leveret):
    assert leveret("declare", "queue", "hollow") == (0, "", "")
    for more in ((), ("--take",), ("--json",)):
        assert leveret("get", "hollow", *more) == (0, "", "leveret get: queue 'hollow' has no message that is ready\n")
    assert leveret("publish", "", "hollow", "x") == (0, "", "")
    status, output, told = leveret("get", "hollow", "--take", "--count", "5")
    assert (status, told) == (0, "") and output.endswith("\nx\n")
    leveret("delete", "queue", "hollow")


def test_top_once_is_plain_text(leveret):
    leveret("declare", "queue", "busy")
    leveret("publish", "", "busy", "--body", "x", "--count", "7")
    status, output, _ = leveret("top", "--once")
    lines = output.splitlines()
    assert status == 0 and lines[0].startswith(f"Leveret {VERSION}, up 0:00:") and "1 connections" in lines[0]
    assert lines[3].split() == ["name", "type", "ready", "unsettled", "octets", "consumers", "grows", "full"]
    assert lines[4].split() == ["busy", "classic", "7", "0", "7", "0", "-", "no"] and "reply-to" not in output
    leveret("delete", "queue", "busy")


def test_top_lives_in_a_terminal(broker):
    """A pseudo-terminal: the table is drawn, drawn anew, and Ctrl-C ends it."""
    import pty

    front, back = pty.openpty()
    command = [sys.executable, "-m", "leveret.tools.cli", "top", "--seconds", "0.1", url_of(broker)]
    variables = dict(os.environ, TERM="xterm", COLUMNS="100", LINES="30")
    shown = subprocess.Popen(command, stdin=back, stdout=back, stderr=back, env=variables, start_new_session=True)
    os.close(back)
    drawn = b""
    limit = time.monotonic() + 60
    rates = re.compile(rb"published \d+/s, delivered \d+/s, settled \d+/s")  # from the second look on: what top asks is counted too
    while not rates.search(drawn) and time.monotonic() < limit:
        drawn += os.read(front, 65536)
    assert rates.search(drawn), drawn
    shown.send_signal(2)
    while shown.poll() is None and time.monotonic() < limit:
        try:
            drawn += os.read(front, 65536)
        except OSError:
            break
    assert shown.wait(timeout=60) == 130 and b"Traceback" not in drawn, drawn
    os.close(front)


def test_a_drained_broker_lets_clients_go_and_no_other_in_until_it_reads_its_file(tmp_path, capsys):
    path = tmp_path / "leveret.toml"
    path.write_text('[[user]]\nname = "a"\npassword = "a"\ntags = ["administrator"]\n' + FULL_RIGHTS)
    server = Serve("--listen", "amqp://127.0.0.1:0", "--config", str(path))
    url = server.urls[0].replace("amqp://", "amqp://a:a@")
    client = pika.BlockingConnection(pika.URLParameters(url + "/%2F"))
    with subprocess.Popen([sys.executable, "-m", "leveret.tools.cli", "drain", url], stderr=subprocess.PIPE) as draining:
        with pytest.raises(pika.exceptions.ConnectionClosedByBroker, match="drained for maintenance"):
            for _ in range(100):
                client.process_data_events(0.1)
        assert draining.wait(timeout=60) == 0, draining.stderr.read()
    assert cli.main(["status", url]) == 1
    server.process.send_signal(1)  # SIGHUP
    limit = time.monotonic() + 60
    while cli.main(["status", url]) and time.monotonic() < limit:
        time.sleep(0.05)
    capsys.readouterr()
    assert cli.main(["reload", url]) == 0 and "1 users (0 new, 0 removed)" in capsys.readouterr().out
    path.write_text("[[user]\n")
    assert cli.main(["reload", url]) == 1 and "stay as they are" in capsys.readouterr().out
    assert server.end()[0] == 0


def test_reload_without_a_file_says_so(leveret):
    assert leveret("reload") == (1, "", "leveret reload: this broker has no configuration file (--config) to read anew\n")


def doctor(capsys, *arguments):
    """(exit status, findings)."""
    status = cli.main(["doctor", "--json", *arguments])
    return status, json.loads(capsys.readouterr().out)


def sentences(found, level):
    return [each["sentence"] for each in found if each["level"] == level]


def test_doctor_has_nothing_to_say_against_a_broker_that_is_well(broker, capsys, tmp_path):
    path = tmp_path / "l.toml"
    path.write_text(f'listen = ["amqp://127.0.0.1:5672"]\n[data]\ndirectory = "{tmp_path / "data"}"\n')
    status, found = doctor(capsys, "--config", str(path), url_of(broker))
    assert status == 0 and not sentences(found, "wrong"), found
    assert any("can be served" in sentence for sentence in sentences(found, "ok"))
    assert any("has run for" in sentence for sentence in sentences(found, "ok"))
    assert cli.main(["doctor"]) == 0
    assert all(line.split()[0] in ("ok", "note", "wrong") for line in capsys.readouterr().out.splitlines())


def test_doctor_finds_what_is_wrong(leveret, broker, capsys, tmp_path):
    path = tmp_path / "l.toml"
    path.write_text('listen = ["amqp://0.0.0.0:5672", "serial:///dev/none?baud=9600"]\n')
    status, found = doctor(capsys, "--config", str(path), "amqp://127.0.0.1:1")
    told = " | ".join(sentences(found, "wrong"))
    assert status == 1 and "only guest, from this one, may log in" in told and "/dev/none is not there" in told and "127.0.0.1:1" in told
    path.write_text('[[user]]\nname = "a"\npassword = "a"\n')
    path.chmod(0o644)
    assert any("others may read it" in each for each in sentences(doctor(capsys, "--config", str(path))[1], "wrong"))
    path.write_text("queues = 3\n")
    status, found = doctor(capsys, "--config", str(path))
    assert status == 1 and "there is no setting 'queues'" in sentences(found, "wrong")[0]
    leveret("declare", "queue", "left", "-a", "x-max-length=1")
    leveret("publish", "", "left", "--body", "x")
    status, found = doctor(capsys, url_of(broker))
    assert status == 0 and any("1 queues have messages and no consumer, as 'left'" in each for each in sentences(found, "note")), found
    leveret("delete", "queue", "left")


def test_doctor_reads_the_log_of_a_broker_that_does_not_run(capsys, tmp_path):
    directory = tmp_path / "data"
    assert doctor(capsys, "--data", str(directory))[0] == 0
    server = Serve("--listen", "amqp://127.0.0.1:0", "--data", str(directory))
    connection = server.connect()
    connection.channel().queue_declare("q", durable=True)
    status, found = doctor(capsys, "--data", str(directory))
    assert status == 0 and any("in use by a running broker" in each for each in sentences(found, "ok"))
    connection.close()
    assert server.end()[0] == 0
    status, found = doctor(capsys, "--data", str(directory))
    assert status == 0 and any("is whole" in each for each in sentences(found, "ok"))
