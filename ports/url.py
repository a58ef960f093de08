"""A client's URL: amqp://user:password@host:port/virtual-host, on both interpreters (there is no urllib on a board)."""


def unquote(text):
    """Percent-decoding (RFC 3986 section 2.1)."""
    parts = text.split("%")
    octets = parts[0].encode("utf-8")
    for part in parts[1:]:
        octets += bytes((int(part[:2], 16),)) + part[2:].encode("utf-8")
    return str(octets, "utf-8")


def parse_url(url):
    """amqp://user:password@host:port/virtual-host as (host, port, user, password, virtual host). Raises ValueError.

    Left out: guest, guest, 127.0.0.1, 5672 and the virtual host "/".
    """
    if not url.startswith("amqp://"):
        raise ValueError("not an amqp:// URL: " + url)
    place, _, path = url[7:].partition("/")
    login, at, address = place.rpartition("@")
    user, _, password = login.partition(":") if at else ("guest", "", "guest")
    if address.startswith("["):
        host, _, port = address[1:].partition("]")
        port = port.lstrip(":")
    else:
        host, _, port = address.partition(":")
    return host or "127.0.0.1", int(port or 5672), unquote(user), unquote(password), unquote(path) or "/"
