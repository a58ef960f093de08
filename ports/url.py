"""A client's URL, on both interpreters (there is no urllib on a board):

    amqp://user:password@host:port/virtual-host
    amqps://user:password@host:port/virtual-host?ca=FILE&cert=FILE&key=FILE&name=HOST&auth=external

`ca`: PEM file of the authorities that the broker's certificate must come from (left out: those of the system). `cert`, `key`: the client's
own certificate. `name`: the name in the broker's certificate (left out: the host). `auth=external`: the broker reads the
user from the certificate. The client always checks the certificate. A URL with `protocol=1.0` is read by url_1_0.py,
one with `protocol=0-10` by url_0_10.py, one with another `protocol=0...` by url_older.py.
"""

LOGIN_SIZE_MAX = 400  # characters of user and password together
TLS_KEYS = ("ca", "cert", "key", "name", "auth")


class Url:
    """The parts of a URL. `tls`: None, or a dict with ca, cert, key (file names or None) and name. `external`: log in by certificate."""

    def __init__(
        self,
        host: str,
        port: int,
        user: str,
        password: str,
        virtual_host: str,
        tls: dict[str, str | None] | None = None,
        external: bool = False,
    ) -> None:
        self.host = host
        self.port = port
        self.user = user
        self.password = password
        self.virtual_host = virtual_host
        self.tls = tls
        self.external = external

    def place(self) -> str:
        """host:port, for messages."""
        return ("[%s]:%d" if ":" in self.host else "%s:%d") % (self.host, self.port)

    def login(self) -> dict[str, str]:
        """The log-in arguments of core's Client, by name."""
        return {
            "user": self.user,
            "password": self.password,
            "virtual_host": self.virtual_host,
            "mechanism": "EXTERNAL" if self.external else "PLAIN",
        }


def without_login(url: str) -> str:
    """A URL for messages: user and password are left out."""
    head, at, place = url.rpartition("@")
    return head.partition("://")[0] + "://...@" + place if at else url


def unquote(text: str) -> str:
    """Percent-decoding (RFC 3986 section 2.1). Raises ValueError."""
    parts = text.split("%")
    octets = parts[0].encode("utf-8")
    for part in parts[1:]:
        if len(part) < 2 or part[:2].strip("0123456789abcdefABCDEF"):
            raise ValueError("behind a % come two hexadecimal digits, and a % itself is %25")
        octets += bytes((int(part[:2], 16),)) + part[2:].encode("utf-8")
    try:
        return str(octets, "utf-8")
    except UnicodeError:
        raise ValueError("what % and digits stand for is not UTF-8") from None


def check_host(host: str) -> None:
    """Raise ValueError for a text that can be no host's name or address. The name is not resolved here."""
    if [each for each in host if each <= " " or each in "/\\?#@"]:
        raise ValueError("the host %r has a character that no host has" % host)
    labels = [] if ":" in host else host.split(".")
    if len(labels) > 1 and labels[-1] == "":
        labels = labels[:-1]  # a name from the root on
    if len(host) > 253 or [label for label in labels if not 0 < len(label.encode("utf-8")) < 64]:
        raise ValueError("the host %r is no name: between its dots there are 1 to 63 octets, and it has 253 at most" % host)


def read_url(url: str) -> Url:
    """A Url. Raises ValueError with a sentence.

    Left out: guest, guest, 127.0.0.1, 5672 (with TLS 5671) and the virtual host "/".
    """
    if [part for part in url.partition("?")[2].split("&") if part[:9] == "protocol="]:
        from .url_1_0 import read_url_with

        return read_url_with(url)
    secure = url.startswith("amqps://")
    if not secure and not url.startswith("amqp://"):
        raise ValueError("not an amqp:// or amqps:// URL: " + without_login(url))
    whole, _, query = url[8 if secure else 7 :].partition("?")
    place, _, path = whole.partition("/")
    login, at, address = place.rpartition("@")
    user, _, password = login.partition(":") if at else ("guest", "", "guest")
    if address.startswith("["):
        host, _, port = address[1:].partition("]")
        port = port.lstrip(":")
    else:
        host, _, port = address.partition(":")
    host = host or "127.0.0.1"
    check_host(host)
    asked = _query(query, secure)
    tls = {"ca": asked.get("ca"), "cert": asked.get("cert"), "key": asked.get("key"), "name": asked.get("name") or host} if secure else None
    user, password, virtual_host = unquote(user), unquote(password), unquote(path) or "/"
    if len(user) + len(password) > LOGIN_SIZE_MAX or len(virtual_host.encode("utf-8")) > 255:
        raise ValueError("user and password have %d characters together at most, the virtual host has 255 octets" % LOGIN_SIZE_MAX)
    return Url(host, _port(port or ("5671" if secure else "5672")), user, password, virtual_host, tls, "auth" in asked)


def _port(text: str) -> int:
    if text.strip("0123456789") or not 0 < len(text) < 6 or not 0 < int(text) < 65536:
        raise ValueError("port %r is not a number from 1 to 65535" % text)
    return int(text)


def _query(query: str, secure: bool) -> dict[str, str]:
    """The settings behind the question mark, checked."""
    asked: dict[str, str] = {}
    for part in query.split("&") if query else ():
        name, _, text = part.partition("=")
        if not secure or name not in TLS_KEYS:
            raise ValueError("there is no setting %r in a client's URL; amqps:// has %s" % (name, ", ".join(TLS_KEYS)))
        asked[name] = unquote(text)
        if "\0" in asked[name]:
            raise ValueError("%s has a NUL, which no name has" % name)
    if ("cert" in asked) != ("key" in asked):
        raise ValueError("a client certificate needs both cert and key")
    if "auth" in asked and (asked["auth"] != "external" or "cert" not in asked):
        raise ValueError("auth can only be external, and needs cert and key")
    return asked
