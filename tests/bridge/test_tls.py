"""TLS as a client: authority, name and client certificate are checked; `status` and `definitions` go the same way."""

import itertools
import json
import os
import re
import subprocess
import sys

import pytest
from certificates import Authority
from faults import FaultyLink
from inside import InsideBridge
from nodes import Leveret, free_port

from leveret.ports.client import ConnectFailed, LoginRefused, connect

COMMAND = [sys.executable, "-m", "leveret.tools.cli"]


class Secure(Leveret):
    """A Leveret that also listens with TLS, where a client without a certificate is refused."""

    def __init__(self, authority):
        self.authority = authority
        self.certificate, self.key = authority.issue("server", "/CN=broker")
        self.client_certificate, self.client_key = authority.issue("client", "/CN=gateway7")
        Leveret.__init__(self)
        with open(os.path.join(self.directory, "output"), encoding="utf-8") as file:
            line = next(line for line in file if line.startswith("ready amqps://"))
        self.secure_port = int(line.split(":")[2].split("?")[0])

    def command(self):
        config = os.path.join(self.directory, "config.toml")
        with open(config, "w", encoding="utf-8") as file:
            rights = 'configure = ".*"\nwrite = ".*"\nread = ".*"\n'
            file.write(
                '[[user]]\nname = "guest"\npassword = "guest"\ntags = ["administrator"]\n'
                + rights
                + '[[user]]\nname = "gateway7"\n'
                + rights
            )
        return Leveret.command(self) + [
            "--config",
            config,
            "--listen",
            "amqps://127.0.0.1:0?cert=%s&key=%s&ca=%s&verify=peer" % (self.certificate, self.key, self.authority.certificate),
        ]

    def secure_url(self, login="guest:guest@", **settings):
        given = {"ca": self.authority.certificate, "cert": self.client_certificate, "key": self.client_key}
        given.update(settings)
        return "amqps://%s127.0.0.1:%d/?%s" % (
            login,
            self.secure_port,
            "&".join("%s=%s" % (name, text) for name, text in given.items() if text is not None),
        )


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    node = Secure(Authority(tmp_path_factory.mktemp("authority")))
    yield node
    node.stop()


def test_a_large_message_goes_both_ways(secure):
    client = connect(secure.secure_url())
    client.queue_declare("q")
    body = bytes(index & 255 for index in range(1000000))
    for _ in range(3):
        client.publish("", "q", body)
    client.consume("q")
    assert [message.body for message in itertools.islice(client.messages(60000), 3)] == [body] * 3
    client.close()


def test_the_certificate_is_the_log_in(secure):
    client = connect(secure.secure_url(login="", auth="external"))
    client.queue_declare("mine", exclusive=True)
    client.close()
    with pytest.raises((LoginRefused, ConnectFailed), match="offers no EXTERNAL|403"):
        other = secure.authority.issue("other", "/CN=stranger")
        connect(secure.secure_url(login="", auth="external", cert=other[0], key=other[1]))


def test_what_is_wrong_is_one_sentence(secure, tmp_path):
    stranger = Authority(tmp_path / "stranger", "stranger")
    for settings, text in (
        ({"ca": stranger.certificate}, "TLS with 127.0.0.1:.* failed: (unable to get local issuer|self-signed)"),
        ({"name": "other.example"}, "TLS with 127.0.0.1:.* failed: .*other.example"),
        ({"ca": "/nonesuch.pem"}, "the file /nonesuch.pem cannot be read: No such file"),
        ({"cert": secure.authority.certificate}, "are not a certificate and its key"),
        ({"cert": None, "key": None}, "the connection to|ended|no AMQP|closed|TLS"),
    ):
        with pytest.raises(ConnectFailed, match=text):
            connect(secure.secure_url(**settings))
    with pytest.raises(ConnectFailed, match="TLS with 127.0.0.1"):
        connect(secure.secure_url().replace(str(secure.secure_port), str(secure.port)), 3000)


def test_status_and_definitions_speak_tls(secure, tmp_path):
    result = subprocess.run(COMMAND + ["status", secure.secure_url()], capture_output=True, text=True, timeout=120)
    assert result.returncode == 0 and result.stdout.startswith("product Leveret"), result.stderr
    file = tmp_path / "definitions.json"
    result = subprocess.run(
        COMMAND + ["definitions", "export", "--from", secure.secure_url(), str(file)], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    assert "gateway7" in [user["name"] for user in json.loads(file.read_text())["users"]]
    result = subprocess.run(COMMAND + ["status", secure.secure_url(name="other.example")], capture_output=True, text=True, timeout=120)
    assert result.returncode == 1 and "other.example" in result.stderr and result.stderr.count("\n") == 1


def test_each_refusal_is_a_sentence_of_the_bridge_and_the_next_address_is_taken(secure, tmp_path):
    stranger = Authority(tmp_path / "stranger", "stranger")
    foreign = stranger.issue("client", "/CN=gateway7")
    client = connect(secure.url)
    client.exchange_declare("telemetry", "topic", durable=True)
    client.queue_declare("readings", durable=True)
    client.queue_bind("readings", "telemetry", "#")
    refusals = (
        (secure.secure_url(ca=stranger.certificate), "self-signed|unable to get local issuer"),
        (secure.secure_url(ca=None), "self-signed|unable to get local issuer"),
        (secure.secure_url(name="other.example"), "other.example"),
        (secure.secure_url(cert=None, key=None), "failed: the broker says: .*certificate required"),
        (secure.secure_url(cert=foreign[0], key=foreign[1]), "failed: the broker says: .*unknown ca"),
        (secure.secure_url(cert=secure.authority.certificate), "are not a certificate and its key"),
        (secure.secure_url(ca="/nonesuch.pem"), "/nonesuch.pem cannot be read"),
        (secure.secure_url().replace(str(secure.secure_port), str(secure.port)), "TLS with 127.0.0.1"),
    )
    nowhere = free_port()
    right = secure.secure_url().replace(str(secure.secure_port), str(nowhere))
    inside = InsideBridge([url for url, _ in refusals] + [right], [b"1"])
    link = None
    try:
        for _number, (_url, words) in enumerate(refusals):
            inside.until(lambda: [line for line in inside.said if re.search(words, line)], words, 25)
        link = FaultyLink(secure.secure_port, None, 0, 0, nowhere)
        inside.bridged(1)
        assert not [line for line in inside.said if "Traceback" in line or "\n" in line or "guest:guest" in line]
        print("\n".join(inside.said))
    finally:
        inside.close()
        if link is not None:
            link.close()
    assert client.get("readings").body == b"1"
    client.close()
