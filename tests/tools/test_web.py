"""The listeners for HTTP of `leveret serve` (tools/web.py): what the server for HTTP is told of all listeners, and who hears a sentence."""

import types

import pytest
from inside import new_broker

from leveret.ports.sockets import SocketStream
from leveret.tools import address
from leveret.tools.web import Web


class Listening:
    """Stands for serve.Server and its loop."""

    def __init__(self):
        self.broker = new_broker()
        self.lines = ["line"]
        self.trace, self.is_traced = print, bool
        self.loop = self
        self.listened = []
        self.refused = print

    def listen(self, *given):
        self.listened.append(given)
        return given[0], 4711

    def certificates_of(self, place):
        return types.SimpleNamespace(context=place.cert)


@pytest.fixture
def web():
    """(Web, its serving, sentences of the operator's log)."""
    serving, said = Listening(), []
    return Web(serving, types.SimpleNamespace(peer=lambda *given: said.append(given))), serving, said


def test_every_listener_but_a_serial_line_is_told_with_its_port_and_each_certificate_once(web):
    made, _, _ = web
    secured = "?cert=c.pem&key=k.pem"
    places = [
        address.parse("amqp://127.0.0.1:0"),
        address.parse("amqps://127.0.0.1:0" + secured),
        address.parse("serial:///dev/ttyX?baud=9600"),
        address.parse_http("https://127.0.0.1:0" + secured),
    ]
    urls = ["amqp://127.0.0.1:5672", "amqps://127.0.0.1:5671", "serial:///dev/ttyX", "https://127.0.0.1:15671"]
    made.tell(places, urls, types.SimpleNamespace(directory="/there"))
    assert made.server.listeners == [("amqp", "127.0.0.1", 5672), ("amqps", "127.0.0.1", 5671), ("https", "127.0.0.1", 15671)]
    assert made.server.certificates == ["c.pem"] and made.server.directory == "/there"
    made.tell([], [], None)
    assert made.server.directory is None


def test_a_listener_is_opened_with_its_kind_of_stream(web):
    made, serving, _ = web
    assert made.listen(address.parse_http("http://127.0.0.1:0")) == ("127.0.0.1", 4711)
    made.listen(address.parse_http("https://127.0.0.1:0?cert=c.pem&key=k.pem"))
    (host, port, accept, plain), (_, _, _, secured) = serving.listened
    assert (host, port, plain) == ("127.0.0.1", 0, SocketStream) and accept == made.server.accept and secured is not SocketStream


def test_metrics_are_open_to_all_from_the_first_listener_that_says_so(web):
    made, _, _ = web
    for url, is_open in (("http://127.0.0.1:0", False), ("http://127.0.0.1:0?metrics=open", True), ("http://127.0.0.1:0", True)):
        made.listen(address.parse_http(url))
        assert made.server.metrics_open is is_open, url


def test_sentences_of_the_broker_go_to_the_log_and_to_the_page(web):
    made, serving, said = web
    serving.broker.log("a sentence", "warning")
    assert said == [("a sentence", "warning")]
    assert [each["sentence"] for each in made.server.alerts()] == ["a sentence"]
    assert made.server.lines is serving.lines and made.server.trace is print and made.server.is_traced is bool
