"""URLs of brokers that are to be spoken to in AMQP 0-8, 0-9, 0.9a5 or 0.9r1: those of url.py with `protocol=`, on both interpreters.

amqp://user:password@host:port/virtual-host?protocol=0-8
amqps://user:password@host/?protocol=0-9&ca=FILE
"""

from .url import Url, read_url

if False:  # for the type checker alone
    from typing import Any

PROTOCOLS = ("0-8", "0-9", "0.9a5", "0.9r1")
DRAFTS = ("0.9a5", "0.9r1")


class UrlOlder(Url):
    """A Url of a broker of one of PROTOCOLS: `protocol`."""

    protocol = ""

    def connection(self) -> "Any":
        """The class of a blocking client's connection."""
        if self.protocol in DRAFTS:
            from . import client_drafts

            return client_drafts.CONNECTIONS[self.protocol]
        from . import client_older

        return client_older.CONNECTIONS[self.protocol]

    def check(self, settings: "Any") -> None:
        """Raise ValueError for a bridge that cannot have this upstream."""
        if not settings.up or [url for url in settings.upstream_urls if getattr(url, "protocol", "") != self.protocol]:
            raise ValueError("all URLs of upstream have one protocol, and downwards it is 0-9-1 or 1.0")
        if self.protocol in DRAFTS:
            raise ValueError("no bridge speaks %s, whose headers have no names like x-gateway and x-sequence" % self.protocol)

    def target(self) -> "Any":
        """The class of a bridge's upstream."""
        from .bridge.target_older import TARGETS

        return TARGETS[self.protocol]


def read_url_older(url: str) -> UrlOlder:
    """A UrlOlder, of a URL with `protocol=`. Raises ValueError with a sentence."""
    whole, _, query = url.partition("?")
    parts = query.split("&")
    asked = [part[9:] for part in parts if part[:9] == "protocol="]
    if len(asked) != 1 or asked[0] not in PROTOCOLS:
        raise ValueError("protocol is %r; it can be %s, 0-10 or 1.0 (left out: 0-9-1)" % (asked[0], ", ".join(PROTOCOLS)))
    others = [part for part in parts if part[:9] != "protocol="]
    given = read_url(whole + ("?" + "&".join(others) if others else ""))
    made = UrlOlder(given.host, given.port, given.user, given.password, given.virtual_host, given.tls, given.external)
    made.protocol = asked[0]
    return made
