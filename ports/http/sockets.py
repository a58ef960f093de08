"""What the system tells of a connection's socket when somebody looks: the address here, the octets that have passed, TLS.

Octets and segments come from Linux' TCP_INFO (struct tcp_info of linux/tcp.h), so that nothing is counted for who does not look. Elsewhere,
and of lines that are no sockets, there are none.
"""

import socket
import struct
from typing import Any

from .listing import Row

TCP_INFO = struct.Struct("=120xQQIII")  # tcpi_bytes_acked, tcpi_bytes_received, tcpi_segs_out, tcpi_segs_in, tcpi_notsent_bytes

CIPHERS = ("aes", "aria", "camellia", "chacha")  # where the name of a cipher begins in OpenSSL's name of a suite


def here(stream: Any) -> tuple[str, int]:
    """The address and the port of this end; "" and 0 where there are none."""
    try:
        host, port = stream.pollable.getsockname()[:2]
        return str(host), int(port)
    except (OSError, AttributeError, TypeError, ValueError):
        return "", 0


def traffic(stream: Any) -> Row:
    """RabbitMQ's counts: octets and segments each way, and the octets that wait to be sent. Empty where the system tells none."""
    try:
        octets = stream.pollable.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO.size)
        sent, received, segments_out, segments_in, waiting = TCP_INFO.unpack(octets)
    except (OSError, AttributeError, struct.error):
        return {}
    return {"recv_oct": received, "recv_cnt": segments_in, "send_oct": sent, "send_cnt": segments_out, "send_pend": waiting}


def tls(stream: Any) -> Row:
    """The version of TLS and its ciphers, as RabbitMQ names them; None in a connection without it."""
    row: Row = dict.fromkeys(("ssl_protocol", "ssl_key_exchange", "ssl_cipher", "ssl_hash"))
    try:
        cipher, _, _ = stream.pollable.cipher()
        version = stream.pollable.version()
    except (OSError, AttributeError, TypeError, ValueError):
        return row
    words = cipher.lower().replace("-", "_").split("_")
    at = next((at for at, word in enumerate(words) if word.startswith(CIPHERS)), len(words))
    exchange = "any" if words[0] == "tls" else "_".join(words[:at])  # TLS 1.3 agrees on it apart
    row.update(ssl_protocol=str(version).lower(), ssl_key_exchange=exchange, ssl_cipher="_".join(words[at:-1]), ssl_hash=words[-1])
    return row
