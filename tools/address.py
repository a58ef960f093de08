"""URLs of listeners: `amqp://HOST:PORT`, `amqps://HOST:PORT?cert=FILE&key=FILE`, `ws://HOST:PORT`, `wss://HOST:PORT?cert=FILE&key=FILE`,
`serial:///dev/ttyX?baud=115200`; for the management API `http://HOST:PORT` and `https://HOST:PORT?cert=FILE&key=FILE`.

Pure text work: nothing is opened here. A listener's URL carries no user, password or path: those belong to a client's URL.
"""

import errno
import socket
from urllib.parse import parse_qs, urlsplit

from leveret.core.serial_link.window import WINDOW_SIZES, grain_size
from leveret.ports.setting_rows import reading
from leveret.ports.settings import Table
from leveret.ports.url import check_host

from .usage import UsageError, checked

AMQP_PORT = 5672
AMQPS_PORT = 5671
PORTS = {"amqp": AMQP_PORT, "amqps": AMQPS_PORT, "ws": 80, "wss": 443, "http": 15672, "https": 15671}
OPEN = "open"  # metrics=open: who scrapes needs no user
BAUD_DEFAULT = 115200
BAUD_MAX = 4000000
TLS_QUERY = "?cert=FILE&key=FILE[&ca=FILE[&verify=peer]]"
TLS_FORM = "amqps://HOST:PORT" + TLS_QUERY
LINK_ARGUMENTS = {"speed": "speed", "crc": "check_size", "frame": "payload_size_max", "window": "window_size", "address": "address"}


def digits(words, numbers):
    """The kind of a number in a URL."""
    return reading(words, lambda text: int(text) if text.isascii() and text.isdigit() and int(text) in numbers else None)


SERIAL = Table(
    (
        (
            "baud",
            digits(f"a whole number from 1 to {BAUD_MAX}", range(1, BAUD_MAX + 1)),
            BAUD_DEFAULT,
            "bits/s",
            "the line's speed at first",
        ),
        (
            "speed",
            digits(f"from 1 to {BAUD_MAX}", range(1, BAUD_MAX + 1)),
            None,
            "bits/s",
            "the speed that both ends change to; left out: none",
        ),
        ("crc", digits("16 or 32", (16, 32)), None, "bits", "of the check of each frame"),
        ("frame", digits("from 32 to 2048", range(32, 2049)), None, "octets", "of a frame's payload, at most"),
        ("window", digits("one of " + ", ".join(map(str, WINDOW_SIZES)), WINDOW_SIZES), None, "octets", "that may be on the way"),
        ("address", digits("from 1 to 255", range(1, 256)), None, "station", "its number on a half-duplex line"),
    ),
    "{url!r}: a serial line has no setting {name!r}; there are {names}",
    "{url!r}: {name} must be {words}",
)
VERSIONS = ("0.9a5", "0.9r1")
VERSION_FORM = "amqp://HOST:PORT?version=" + "|".join(VERSIONS)
FORMS = f"amqp://HOST:PORT, amqp://[IPv6]:PORT, {VERSION_FORM}, {TLS_FORM}, ws://HOST:PORT, wss:// as amqps:// or serial:///dev/ttyX?baud=115200"
HTTP_FORMS = "HOST:PORT, http://HOST:PORT[?metrics=open] or https://HOST:PORT" + TLS_QUERY


class TcpAddress:
    """Where to listen over TCP; port 0 lets the system choose."""

    def __init__(self, host, port, version=None):
        self.host = host
        self.port = port
        self.version = version  # of the draft that its ambiguous header means, or None

    scheme = "amqp"

    def url(self, port=None):
        return url_of(self, port)


class WebSocketAddress:
    """Where to listen for AMQP over WebSocket without TLS."""

    scheme = "ws"

    def __init__(self, host, port):
        self.host = host
        self.port = port

    def url(self, port=None):
        return url_of(self, port)


class HttpAddress:
    """Where to listen for HTTP without TLS. `metrics`: OPEN, or None."""

    scheme = "http"

    def __init__(self, host, port, metrics=None):
        self.host = host
        self.port = port
        self.metrics = metrics

    def url(self, port=None):
        return url_of(self, port)


class TlsAddress:
    """Where to listen with TLS: PEM files. `ca`: clients are asked for a certificate of this authority; `verify`: they must have one.

    `scheme`: "amqps"; "amqp": TLS for peers that ask for it by AMQP 1.0's TLS header; "wss": AMQP over WebSocket within it; "https": the
    management API, with `metrics` as HttpAddress has it.
    """

    def __init__(self, host, port, cert, key, ca=None, verify=False, scheme="amqps", metrics=None):
        self.host = host
        self.port = port
        self.scheme = scheme
        self.cert = cert
        self.key = key
        self.ca = ca
        self.verify = verify
        self.metrics = metrics

    def url(self, port=None):
        return url_of(self, port)


class SerialAddress:
    """A serial device and its speed in bits per second; `options` are those of a Link (core/serial_link/link.py)."""

    scheme = "serial"

    def __init__(self, device, baud, options=None):
        self.device = device
        self.baud = baud
        self.options = options or {}

    def url(self):
        said = {
            name: (value * 8 if name == "crc" else value)
            for name, option in LINK_ARGUMENTS.items()
            if (value := self.options.get(option)) is not None
        }
        return f"serial://{self.device}?baud={self.baud}" + "".join(f"&{name}={value}" for name, value in said.items())


def url_of(place, port):
    """The URL of a TCP listener, with the port that it became."""
    host = f"[{place.host}]" if ":" in place.host else place.host
    version = getattr(place, "version", None)
    return f"{place.scheme}://{host}:{place.port if port is None else port}" + (f"?version={version}" if version else "")


def is_open(place):
    """True when other machines reach a listener."""
    return not (isinstance(place, SerialAddress) or place.host in ("localhost", "::1") or place.host.startswith("127."))


def explain(error):
    """The error of a listening socket, in words."""
    if isinstance(error, socket.gaierror):
        return "there is no such host"
    words = {
        errno.EADDRINUSE: "the port is in use by another program",
        errno.EADDRNOTAVAIL: "the address is not one of this machine",
        errno.EACCES: "ports below 1024 need more rights than this user has",
    }
    return words.get(error.errno, error.strerror or str(error))


def parse(url):
    """A TcpAddress, WebSocketAddress, TlsAddress or SerialAddress. Raises UsageError."""
    try:
        parts = urlsplit(url)
        if parts.scheme == "amqp" and list(settings_of(parts)) == ["version"]:
            return _draft(url, parts)
        if parts.scheme in ("amqps", "wss") or parts.scheme == "amqp" and parts.query:
            return _tls(url, parts)
        if parts.scheme in ("amqp", "ws"):
            return _tcp(url, parts)
        if parts.scheme == "serial":
            return _serial(url, parts)
    except ValueError as error:
        raise UsageError(f"{url!r} is not a listener's URL: {error}") from None
    raise UsageError(f"{url!r} is not a listener's URL; it must be {FORMS}")


def parse_http(url):
    """An HttpAddress, or a TlsAddress of the scheme https; HOST:PORT alone is without TLS. Raises UsageError."""
    try:
        parts = urlsplit(url if "://" in url else "http://" + url)
        if parts.scheme in ("http", "https"):
            return _http(url, parts) if parts.scheme == "http" else _tls(url, parts)
    except ValueError as error:
        raise UsageError(f"{url!r} is not a place for HTTP: {error}") from None
    raise UsageError(f"{url!r} is not a place for HTTP; it must be {HTTP_FORMS}")


def settings_of(parts):
    """{name: text} behind the ? of a URL. Raises ValueError."""
    query = parts.query.replace("+", "%2B")  # a plus sign in the name of a file is one
    return {name: texts[-1] for name, texts in parse_qs(query, keep_blank_values=True, strict_parsing=bool(query)).items()}


def _tcp(url, parts):
    if parts.username or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise UsageError(f"{url!r} says more than a listener needs; it must be {parts.scheme}://HOST:PORT")
    if not parts.hostname:
        raise UsageError(f"{url!r} names no host; it must be {parts.scheme}://HOST:PORT, as amqp://127.0.0.1:5672")
    check_host(parts.hostname)
    kind = WebSocketAddress if parts.scheme == "ws" else TcpAddress
    return kind(parts.hostname, PORTS[parts.scheme] if parts.port is None else parts.port)


def _http(url, parts):
    if parts.username or parts.path not in ("", "/") or parts.fragment or not parts.hostname:
        raise UsageError(f"{url!r} is not a place for HTTP; it must be {HTTP_FORMS}")
    asked = settings_of(parts)
    if set(asked) - {"metrics"} or asked.get("metrics", OPEN) != OPEN:
        raise UsageError(f"{url!r}: HTTP has one setting, metrics=open")
    check_host(parts.hostname)
    return HttpAddress(parts.hostname, PORTS["http"] if parts.port is None else parts.port, asked.get("metrics"))


def _draft(url, parts):
    """A listener of a draft."""
    version = settings_of(parts)["version"]
    if version not in VERSIONS:
        raise UsageError(f"{url!r}: version must be {' or '.join(VERSIONS)}; every published version is served without it")
    place = _tcp(url, parts._replace(query=""))
    place.version = version
    return place


def _tls(url, parts):
    form = f"{parts.scheme}://HOST:PORT{TLS_QUERY}"
    if parts.username or parts.path not in ("", "/") or parts.fragment or not parts.hostname:
        raise UsageError(f"{url!r} is not a listener's URL with TLS; it must be {form}")
    asked = settings_of(parts)
    metrics = asked.pop("metrics", None) if parts.scheme == "https" and asked.get("metrics") == OPEN else None
    unknown = sorted(set(asked) - {"cert", "key", "ca", "verify"})
    if unknown:
        raise UsageError(f"{url!r}: TLS has no setting {unknown[0]!r}; there are cert, key, ca and verify")
    check_host(parts.hostname)
    for name in ("cert", "key", "ca"):
        if "\0" in asked.get(name, ""):
            raise UsageError(f"{url!r}: {name} has a NUL, which no file has in its name")
    for name in ("cert", "key"):
        if not asked.get(name):
            raise UsageError(f"{url!r} names no {name}; it must be {form}")
    if "verify" in asked and (asked["verify"] != "peer" or not asked.get("ca")):
        raise UsageError(f"{url!r}: verify can only be peer, and needs ca, the file of the authority that clients' certificates come from")
    port = PORTS[parts.scheme] if parts.port is None else parts.port
    return TlsAddress(parts.hostname, port, asked["cert"], asked["key"], asked.get("ca") or None, "verify" in asked, parts.scheme, metrics)


def _serial(url, parts):
    if parts.netloc or not parts.path.startswith("/") or parts.path.endswith("/") or "\0" in parts.path:
        raise UsageError(f"{url!r} names no device by its whole path; it must be serial:///dev/ttyX?baud={BAUD_DEFAULT}")
    values = checked(SERIAL.full, settings_of(parts), url=url)
    options = {
        option: values[name] // 8 if name == "crc" else values[name] for name, option in LINK_ARGUMENTS.items() if values[name] is not None
    }
    check_line(url, options)
    return SerialAddress(parts.path, values["baud"], options)


def check_line(where, options):
    """Check a line's settings against each other. Raises UsageError."""
    window, frame = options.get("window_size"), options.get("payload_size_max")
    if window and frame and not grain_size(window) <= frame <= window // 2:
        raise UsageError(f"{where!r}: frame must be from {grain_size(window)} to {window // 2} with window={window}")
    if "address" in options and "speed" in options:
        raise UsageError(f"{where!r}: the stations of a half-duplex line have one speed, baud; leave speed out")
