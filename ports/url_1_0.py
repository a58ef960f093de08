"""URLs of brokers that are to be spoken to in AMQP 1.0: those of url.py with `protocol=1.0`, on both interpreters.

    amqp://user:password@host:port/virtual-host?protocol=1.0
    amqps://user:password@host/?protocol=1.0&auth=cbs&ca=FILE

`auth`: plain (left out: this), anonymous, scram-sha-256, external (with cert and key), or cbs: user and password are the name and the key
of a policy of Azure's Service Bus or Event Hubs, tokens made from them are put to `$cbs`. `node=queue` or `topic`: the kind of node that
the peer makes for a new address (ActiveMQ Artemis). A virtual host goes to the peer as RabbitMQ wants it, "vhost:NAME".
"""

from random import getrandbits

from .url import Url, read_url, unquote

if False:  # for the type checker alone
    from typing import Any

KEYS = ("protocol", "auth", "node")
MECHANISMS = {"plain": "PLAIN", "anonymous": "ANONYMOUS", "scram-sha-256": "SCRAM-SHA-256", "external": "EXTERNAL", "cbs": "ANONYMOUS"}
NODES = ("queue", "topic")


class Url10(Url):
    """A Url of a broker of AMQP 1.0. `auth`: one of MECHANISMS; `node`: one of NODES, or ""."""

    auth = "plain"
    node = ""

    def login(self) -> "dict[str, Any]":
        """The log-in arguments of core's AMQP 1.0 Client, by name; the nonce is another one each time."""
        external = self.external or self.auth == "anonymous" or self.auth == "cbs"
        named = self.virtual_host not in ("", "/")
        return {
            "user": "" if external else self.user,
            "password": "" if external else self.password,
            "hostname": "vhost:" + self.virtual_host if named else self.name(),
            "mechanism": "EXTERNAL" if self.external else MECHANISMS[self.auth],
            "nonce": ("%08x%08x%08x" % (getrandbits(30), getrandbits(30), getrandbits(30))).encode("ascii"),
        }

    def name(self) -> str:
        """The host by its name."""
        return self.host if self.tls is None else self.tls["name"] or self.host

    def capabilities(self) -> "dict[str, Any]":
        """Options of a link to or from a node of this broker."""
        return {"capabilities": [self.node]} if self.node else {}

    def check(self, settings: "Any") -> None:
        """Raise ValueError for a bridge that cannot have this upstream."""
        if [url for url in settings.upstream_urls if type(url) is not Url10]:
            raise ValueError("all URLs of upstream have one protocol")

    def target(self) -> "Any":
        """The class of a bridge's upstream."""
        from .bridge.target_1_0 import Target10

        return Target10

    def source(self) -> "Any":
        """The class of a bridge's upstream that it takes messages from."""
        from .bridge.source_1_0 import Source10

        return Source10


def read_url_with(url: str) -> "Url":
    """A Url of the protocol that it names. Raises ValueError with a sentence."""
    asked = [part[9:] for part in url.partition("?")[2].split("&") if part[:9] == "protocol="][0]
    if asked == "0-10":
        from .url_0_10 import read_url_0_10

        return read_url_0_10(url)
    if asked[:2] == "0-" or asked[:2] == "0.":
        from .url_older import read_url_older

        return read_url_older(url)
    return read_url_1_0(url)


def read_url_1_0(url: str) -> Url10:
    """A Url10, of a URL with or without `protocol=1.0`. Raises ValueError with a sentence."""
    whole, _, query = url.partition("?")
    own: "dict[str, str]" = {}
    others = []
    for part in query.split("&") if query else ():
        name, _, text = part.partition("=")
        if name in KEYS and (name, text) != ("auth", "external"):
            own[name] = unquote(text)
        else:
            others.append(part)
    given = read_url(whole + ("?" + "&".join(others) if others else ""))
    made = Url10(given.host, given.port, given.user, given.password, given.virtual_host, given.tls, given.external)
    made.auth = own.get("auth", "external" if given.external else "plain")
    made.node = own.get("node", "")
    if own.get("protocol", "1.0") != "1.0":
        raise ValueError("protocol is %r; it can be 1.0 (left out: 0-9-1)" % own["protocol"])
    if made.auth not in MECHANISMS:
        raise ValueError("auth is %r; with protocol=1.0 it can be %s" % (made.auth, ", ".join(sorted(MECHANISMS))))
    if made.node not in ("",) + NODES:
        raise ValueError("node is %r; it can be %s" % (made.node, " or ".join(NODES)))
    return made
