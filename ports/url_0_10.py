"""URLs of brokers that are to be spoken to in AMQP 0-10: those of url.py with `protocol=0-10`, on both interpreters.

    amqp://user:password@host:port/virtual-host?protocol=0-10
    amqps://user:password@host/?protocol=0-10&auth=external&cert=FILE&key=FILE

`auth`: plain (left out: this), anonymous, scram-sha-256, or external (with cert and key).
"""

from random import getrandbits

from .url import Url, read_url, unquote

if False:  # for the type checker alone
    from typing import Any

MECHANISMS = {"plain": "PLAIN", "anonymous": "ANONYMOUS", "scram-sha-256": "SCRAM-SHA-256", "external": "EXTERNAL"}
NAME_MAX = 1024


class Url010(Url):
    """A Url of a broker of AMQP 0-10. `auth`: one of MECHANISMS."""

    auth = "plain"

    def login(self) -> "dict[str, Any]":
        """The log-in arguments of core's AMQP 0-10 Client, by name."""
        login: "dict[str, Any]" = Url.login(self)
        login["mechanism"] = MECHANISMS[self.auth]
        if self.auth == "scram-sha-256":
            login["nonce"] = ("%08x%08x%08x" % (getrandbits(30), getrandbits(30), getrandbits(30))).encode("ascii")
        if self.virtual_host == "/":
            login["virtual_host"] = ""  # Qpid's brokers have a default one, which has no such name
        return login

    def check(self, settings: "Any") -> None:
        """Raise ValueError for a bridge that cannot have this upstream."""
        if not settings.up or [url for url in settings.upstream_urls if type(url) is not Url010]:
            raise ValueError("all URLs of upstream have one protocol, and downwards it is 0-9-1 or 1.0")

    def target(self) -> "Any":
        """The class of a bridge's upstream."""
        from .bridge.target_0_10 import Target010

        return Target010


def read_url_0_10(url: str) -> Url010:
    """A Url010, of a URL with or without `protocol=0-10`. Raises ValueError with a sentence."""
    whole, _, query = url.partition("?")
    auth = ""
    others = []
    for part in query.split("&") if query else ():
        name, _, text = part.partition("=")
        if name == "auth" and text != "external":
            auth = unquote(text)
        elif name != "protocol":
            others.append(part)
    given = read_url(whole + ("?" + "&".join(others) if others else ""))
    made = Url010(given.host, given.port, given.user, given.password, given.virtual_host, given.tls, given.external)
    made.auth = auth or ("external" if given.external else "plain")
    if made.auth not in MECHANISMS:
        raise ValueError("auth is %r; with protocol=0-10 it can be %s" % (made.auth, ", ".join(sorted(MECHANISMS))))
    return made


def redirected(url: Url010, place: "tuple[str, int]") -> Url010:
    """The same URL at another host and port: with TLS the name in the certificate is that of the new host."""
    tls = url.tls
    if tls is not None:
        tls = dict(tls)
        tls["name"] = place[0]
    made = Url010(place[0], place[1], url.user, url.password, url.virtual_host, tls, url.external)
    made.auth = url.auth
    return made
