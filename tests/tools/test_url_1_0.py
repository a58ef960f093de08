"""URLs of brokers of AMQP 1.0 (ports/url_1_0.py), and what a bridge's settings make of them."""

import pytest

from leveret.ports.bridge.settings import Settings
from leveret.ports.url import Url, read_url
from leveret.ports.url_0_10 import Url010, redirected
from leveret.ports.url_1_0 import Url10, read_url_1_0


def test_protocol_chooses_and_the_rest_stays():
    assert type(read_url("amqp://a:b@host/")) is Url
    url = read_url("amqps://a:b%40c@host:1234/farm?ca=/ca.pem&protocol=1.0&node=queue")
    assert isinstance(url, Url10) and (url.host, url.port, url.user, url.password) == ("host", 1234, "a", "b@c")
    assert url.tls["ca"] == "/ca.pem" and url.capabilities() == {"capabilities": ["queue"]}
    login = url.login()
    assert len(login.pop("nonce")) == 24
    assert login == {"user": "a", "password": "b@c", "hostname": "vhost:farm", "mechanism": "PLAIN"}
    assert read_url_1_0("amqp://host").capabilities() == {}


@pytest.mark.parametrize(
    "query, mechanism, user",
    [
        ("auth=scram-sha-256", "SCRAM-SHA-256", "a"),
        ("auth=anonymous", "ANONYMOUS", ""),
        ("auth=cbs", "ANONYMOUS", ""),
        ("auth=external&cert=c&key=k", "EXTERNAL", ""),
    ],
)
def test_each_log_in(query, mechanism, user):
    login = read_url("amqps://a:b@ns.example/?protocol=1.0&" + query).login()
    assert (login["mechanism"], login["user"], login["hostname"]) == (mechanism, user, "ns.example")


def test_two_nonces_are_two():
    url = read_url_1_0("amqp://a:b@host/")
    assert url.login()["nonce"] != url.login()["nonce"]


@pytest.mark.parametrize(
    "query", ["protocol=2.0", "protocol=1.0&auth=magic", "protocol=1.0&node=table", "protocol=1.0&ca=x", "protocol=1.0&x=y"]
)
def test_what_is_none_is_refused(query):
    with pytest.raises(ValueError, match="protocol|auth|node|setting"):
        read_url("amqp://a:b@host/?" + query)


def test_the_urls_of_amqp_0_10():
    url = read_url("amqps://a:b%40c@host:1234/farm?protocol=0-10&ca=/ca.pem")
    assert isinstance(url, Url010) and (url.host, url.port, url.tls["ca"]) == ("host", 1234, "/ca.pem")
    assert url.login() == {"user": "a", "password": "b@c", "virtual_host": "farm", "mechanism": "PLAIN"}
    other = redirected(url, ("other", 5))
    assert isinstance(other, Url010) and (other.place(), other.tls["name"], other.login()) == ("other:5", "other", url.login())
    assert url.tls["name"] == "host"
    assert read_url("amqp://host/?protocol=0-10&auth=anonymous").login()["mechanism"] == "ANONYMOUS"
    scram = [read_url("amqp://host/?protocol=0-10&auth=scram-sha-256").login() for _ in range(2)]
    assert scram[0]["mechanism"] == "SCRAM-SHA-256" and len(scram[0]["nonce"]) == 24 and scram[0]["nonce"] != scram[1]["nonce"]
    external = read_url("amqps://host/?auth=external&cert=c&key=k&protocol=0-10").login()
    assert external["mechanism"] == "EXTERNAL" and external["virtual_host"] == ""
    with pytest.raises(ValueError, match="protocol=0-10 it can be"):
        read_url("amqp://host/?protocol=0-10&auth=cbs")
    with pytest.raises(ValueError, match="one protocol"):
        settings(upstream=["amqp://h/?protocol=0-10", "amqp://i/?protocol=1.0"])


def settings(**given):
    """Settings of a bridge."""
    return Settings({"name": "b", "gateway": "g", "queue": "q", "exchange": "e", **given})


def test_a_bridges_upstreams_have_one_protocol():
    assert settings(upstream=["amqp://h/?protocol=1.0", "amqp://i/?protocol=1.0"]).upstream_urls[1].host == "i"
    with pytest.raises(ValueError, match="one protocol"):
        settings(upstream=["amqp://h/?protocol=1.0", "amqp://i/"])
    down = {"name": "b", "direction": "down", "queue": "q", "exchange": "e"}
    assert Settings({**down, "upstream": "amqp://h/?protocol=1.0"}).upstream_urls[0].host == "h"
    with pytest.raises(ValueError, match="downwards it is 0-9-1 or 1.0"):
        Settings({**down, "upstream": "amqp://h/?protocol=0-10"})
