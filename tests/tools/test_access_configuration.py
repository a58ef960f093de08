"""Users in the configuration file, URLs of listeners with TLS, `leveret password`: what is right is read, a mistake is one sentence."""

import subprocess
import sys

import pytest

from leveret.core.access import passwords
from leveret.core.access.permissions import CONFIGURE, READ, WRITE
from leveret.core.limits import Limits
from leveret.tools import address, config
from leveret.tools.usage import UsageError

RABBIT = "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"  # test12, from RabbitMQ's guide to passwords

FEW = Limits(password_rounds=7)


def read(directory, text):
    path = directory / "leveret.toml"
    path.write_text(text, encoding="utf-8")
    return config.access(str(path), FEW)


def good(user, secret):
    check = user.stored.check(secret)
    while not check.work():
        pass
    return check.good


def test_without_users_there_is_guest_with_all_rights(tmp_path):
    for access in (config.access("", FEW), read(tmp_path, "")):
        assert list(access.users) == ["guest"] and access.anonymous == ""
        guest = access.users["guest"]
        assert good(guest, b"guest") and guest.stored.rounds == 7 and guest.may(CONFIGURE, "anything")
        assert access.find("guest", True) is guest and access.find("guest", False) is None


def test_users_are_read(tmp_path):
    access = read(
        tmp_path,
        """
        anonymous = "visitor"
        [[user]]
        name = "sensor"
        password = "gr\u00fcn"
        tags = ["monitoring", "impersonator"]
        write = "^sensors$"
        [[user]]
        name = "old"
        password_hash = "%s"
        configure = ".*"
        write = ".*"
        read = ".*"
        [[user]]
        name = "visitor"
    """
        % RABBIT,
    )
    sensor, old, visitor = (access.users[name] for name in ("sensor", "old", "visitor"))
    assert len(access.users) == 3 and access.anonymous == "visitor"
    assert good(sensor, "gr\u00fcn".encode()) and not good(sensor, b"grun") and sensor.stored.rounds == 7
    assert sensor.tags == ("monitoring", "impersonator")
    assert sensor.may(WRITE, "sensors") and not sensor.may(WRITE, "sensors2") and not sensor.may(READ, "sensors")
    assert good(old, b"test12") and old.may(READ, "x")
    assert visitor.stored is None and visitor.permissions is None


def test_topic_permissions_are_read(tmp_path):
    """{vhost} stands for the name of the file's virtual host."""
    text = 'vhost = "/p"\n[[user]]\nname = "a"\npassword = "x"\n'
    user = read(tmp_path, text + 'topic_permissions = { "amq.topic" = { write = "^{username}[.]", read = "^{vhost}$" } }').users["a"]
    assert user.topics.rows == {"amq.topic": ("^{username}[.]", "^{vhost}$")}
    write, bind = user.topics.patterns["amq.topic"]
    assert write.matches("a.b") and not write.matches("b.a.") and bind.matches("/p") and not bind.matches("/")
    assert read(tmp_path, text).users["a"].topics is None and read(tmp_path, text + "topic_permissions = {}").users["a"].topics is None


def test_two_salts_are_not_the_same(tmp_path):
    text = '[[user]]\nname = "a"\npassword = "x"\n'
    assert read(tmp_path, text).users["a"].stored.text() != read(tmp_path, text).users["a"].stored.text()


@pytest.mark.parametrize(
    "text, words",
    [
        ("user = 5", ("[[user]]",)),
        ("[user]\nname = 'a'", ("[[user]]",)),
        ("[[user]]", ("name",)),
        ("[[user]]\nname = ''", ("name",)),
        ("[[user]]\nname = 5", ("name",)),
        ("[[user]]\nname = 'a'\npasswort = 'x'", ("passwort", "password_hash")),
        ("[[user]]\nname = 'a'\npassword = ''", ("'a'", "empty")),
        ("[[user]]\nname = 'a'\npassword = 5", ("'a'", "text")),
        ("[[user]]\nname = 'a'\npassword = 'x'\npassword_hash = 'y'", ("'a'", "both")),
        ("[[user]]\nname = 'a'\npassword_hash = 'nonsense'", ("'a'", "base64")),
        ("[[user]]\nname = 'a'\npassword_hash = 'AAAA'", ("'a'", "36 or 68 octets")),
        ("[[user]]\nname = 'a'\ntags = 'administrator'", ("'a'", "tags")),
        ("[[user]]\nname = 'a'\nread = '('", ("'a'", "'('", "regular expression")),
        ("[[user]]\nname = 'a'\nread = 5", ("'a'", "regular expression")),
        ("[[user]]\nname = 'a'\ntopic_permissions = 5", ("'a'", "topic_permissions", "write")),
        ("[[user]]\nname = 'a'\ntopic_permissions = { e = { write = 'a' } }", ("'a'", "topic_permissions", "read")),
        ("[[user]]\nname = 'a'\ntopic_permissions = { e = { write = 'a', read = 5 } }", ("'a'", "topic_permissions")),
        ("[[user]]\nname = 'a'\ntopic_permissions = { e = { write = '(', read = '' } }", ("'a'", "topic_permissions", "'('")),
        ("[[user]]\nname = 'a'\ntopic_permissions = { %s = { write = '', read = '' } }" % ("e" * 256), ("'a'", "255 octets")),
        (
            "[[user]]\nname = 'a'\ntopic_permissions = { %s }" % ", ".join("e%d = { write = '', read = '' }" % n for n in range(65)),
            ("'a'", "64 exchanges"),
        ),
        ("[[user]]\nname = 'a'\n[[user]]\nname = 'a'", ("two",)),
        ("anonymous = 'b'\n[[user]]\nname = 'a'", ("'b'", "anonymous")),
    ],
)
def test_a_mistake_is_one_sentence_that_names_file_and_user(tmp_path, text, words):
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text)
    told = str(caught.value)
    assert "leveret.toml" in told and "\n" not in told
    for word in words:
        assert word in told, told


def test_an_address_with_tls():
    read = address.parse("amqps://127.0.0.1:0?cert=/a/c+d.pem&key=k%20.pem&ca=ca.pem&verify=peer")
    assert (read.host, read.port, read.cert, read.key, read.ca, read.verify) == ("127.0.0.1", 0, "/a/c+d.pem", "k .pem", "ca.pem", True)
    assert read.url(7) == "amqps://127.0.0.1:7"
    read = address.parse("amqps://[::1]?cert=c&key=k")
    assert (read.host, read.port, read.ca, read.verify, read.url()) == ("::1", 5671, None, False, "amqps://[::1]:5671")


@pytest.mark.parametrize(
    "url",
    [
        "amqps://h:1",
        "amqps://h:1?cert=c",
        "amqps://h:1?key=k",
        "amqps://h:1?cert=&key=k",
        "amqps://h:1?cert=c&key=k&x=1",
        "amqps://?cert=c&key=k",
        "amqps://h:1?cert=c&key=k&verify=peer",
        "amqps://h:1?cert=c&key=k&ca=&verify=peer",
        "amqps://h:1?cert=c&key=k&ca=a&verify=no",
        "amqps://u:p@h:1?cert=c&key=k",
        "amqps://h:1/vhost?cert=c&key=k",
        "amqps://h:1?cert",
        "amqps://h:x?cert=c&key=k",
    ],
)
def test_a_wrong_address_with_tls_is_refused_in_one_sentence_that_repeats_it(url):
    with pytest.raises(UsageError) as caught:
        address.parse(url)
    assert repr(url) in str(caught.value) and "\n" not in str(caught.value)


def make(given, *arguments):
    command = [sys.executable, "-m", "leveret.tools.cli", "password", *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=300)


def test_the_password_command_prints_a_hash_and_nothing_else():
    done = make("geheim\n", "--rounds", "5")
    assert done.returncode == 0 and done.stderr == "" and done.stdout.startswith("pbkdf2-sha256$5$")
    check = passwords.stored(done.stdout.strip()).check(b"geheim")
    assert check.work() and check.good
    assert make("geheim\n", "--rounds", "5").stdout != done.stdout


@pytest.mark.parametrize(
    "given, arguments",
    [
        ("", ()),
        ("\n", ()),
        ("x\n", ("--rounds", "0")),
        ("x\n", ("--rounds", "99999999")),
        ("x\n", ("geheim",)),
    ],
)
def test_the_password_command_refuses_in_one_sentence(given, arguments):
    done = make(given, *arguments)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
