"""TLS under a stream (core/DESIGN.md section 2), for amqps:// listeners and for clients. CPython only: a thin layer over the ssl module.

Laws: nothing waits. The handshake goes on whenever the loop finds the socket ready; a peer that stalls in it holds its slot and nothing
else, until login_timeout_ms. `needs` tells the loop what the socket's state does not show: POLLOUT while the handshake has something to
write, POLLIN while octets that are deciphered already wait to be read. TLS 1.2 and later; no renegotiation.
"""

import select
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Any

# Short names of attributes, as RabbitMQ writes a distinguished name (RFC 4514 section 3 has the first ones).
SHORT = {
    "commonName": "CN",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
    "emailAddress": "EMAILADDRESS",
    "serialNumber": "SERIALNUMBER",
    "title": "TITLE",
    "givenName": "GIVENNAME",
    "surname": "SN",
    "initials": "INITIALS",
    "pseudonym": "PSEUDONYM",
}


# Advice, by OpenSSL's and the protocol's words for the error (RFC 8446 section 6.2).
HINTS = (
    ("certificate required", "it wants a client certificate: cert=FILE&key=FILE in the URL"),
    ("handshake failure", "perhaps it wants a client certificate: cert=FILE&key=FILE in the URL"),
    ("alert unknown ca", "our certificate is not of an authority that it trusts: cert=FILE&key=FILE in the URL"),
    ("says: unknown ca", "our certificate is not of an authority that it trusts: cert=FILE&key=FILE in the URL"),
    ("wrong version number", "perhaps its port is one without TLS: amqp://"),
    ("self-signed certificate", "the authority's certificate is named with ca=FILE in the URL"),
    ("unable to get local issuer", "the authority's certificate is named with ca=FILE in the URL"),
)


class TlsFailed(Exception):
    """Certificates that cannot be used; the text is one sentence."""


class Certificates:
    """A server's certificate chain and key, and the authority that clients' certificates must come from (None: the server asks for none).

    `required`: a client without a certificate is refused. `load` reads the files anew; open connections keep their context.
    """

    context: ssl.SSLContext

    def __init__(self, certificate: str, key: str, authority: str | None = None, required: bool = False) -> None:
        self.certificate = certificate
        self.key = key
        self.authority = authority
        self.required = required
        self.load()

    def load(self) -> None:
        """Make a new context of the files. Raises TlsFailed; the old context then stays."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION
        self._read(context)
        if self.authority is not None:
            context.verify_mode = ssl.CERT_REQUIRED if self.required else ssl.CERT_OPTIONAL
        self.context = context

    def _read(self, context: ssl.SSLContext) -> None:
        refuse_unreadable(self.certificate, self.key, self.authority)
        try:
            context.load_cert_chain(self.certificate, self.key, password=lambda: b"")  # else OpenSSL would ask the terminal for a password
        except (OSError, ValueError) as error:
            raise TlsFailed(f"{self.certificate} and {self.key} are not a certificate and its key: {reason(error)}") from None
        try:
            if self.authority is not None:
                context.load_verify_locations(self.authority)
        except (OSError, ValueError) as error:
            raise TlsFailed(f"{self.authority} holds no certificate of an authority: {reason(error)}") from None


def refuse_unreadable(*paths: str | None) -> None:
    """Raise TlsFailed for a file that cannot be read: OpenSSL's error does not name it."""
    for path in paths:
        try:
            if path is not None:
                open(path, "rb").close()
        except OSError as error:
            raise TlsFailed(f"the file {path} cannot be read: {error.strerror}") from None


def reason(error: BaseException) -> str:
    """OpenSSL's word for an error."""
    return (getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)).replace("_", " ").lower()


def client_context(tls: dict[str, str | None]) -> ssl.SSLContext:
    """An SSLContext for the `tls` settings of a ports/url.py Url: authority, own certificate, name check. Raises TlsFailed."""
    refuse_unreadable(tls["ca"], tls["cert"], tls["key"])
    try:
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=tls["ca"])
    except (OSError, ValueError) as error:
        raise TlsFailed(f"{tls['ca']} holds no certificate of an authority: {reason(error)}") from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        if tls["cert"] is not None:
            context.load_cert_chain(tls["cert"], tls["key"], password=lambda: b"")
    except (OSError, ValueError) as error:
        raise TlsFailed(f"{tls['cert']} and {tls['key']} are not a certificate and its key: {reason(error)}") from None
    return context


class TlsStream:
    """An accepted socket. `refused(stream, text)` is called when the peer fails the handshake, but not when it just leaves."""

    def __init__(
        self,
        connected: socket.socket,
        name: str,
        from_loopback: bool,
        address: str,
        context: ssl.SSLContext,
        refused: Callable[["TlsStream", str], object],
    ) -> None:
        connected.setblocking(False)
        self.pollable: Any = self._wrapped(connected, context)  # an ssl.SSLSocket, or a socket that is not one yet
        self.name = name
        self.from_loopback = from_loopback
        self.address = address
        self.needs = 0
        self.refused = refused
        self.open = False

    def _wrapped(self, connected: socket.socket, context: ssl.SSLContext) -> socket.socket:
        return context.wrap_socket(connected, server_side=True, do_handshake_on_connect=False)

    def read_into(self, view: memoryview | bytearray) -> int | None:
        """Octets read; 0: the peer is gone; None: nothing now."""
        if not self.open:
            state = self._shake_hands()
            if state != 1:
                return state
        count = 0
        ended = False
        self.needs = 0
        try:
            while count < len(view):  # one recv gives one record at most
                size = self.pollable.recv_into(view[count:])
                if size == 0:
                    ended = True
                    break
                count += size
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLWantWriteError:
            self.needs = select.POLLOUT
        except OSError as error:
            self._broke(error)
            ended = True
        if not ended and self.pollable.pending():
            self.needs |= select.POLLIN
        return count or (0 if ended else None)

    def write(self, view: memoryview | bytearray) -> int | None:
        """Octets written; None: none now; 0: the peer is gone."""
        if not self.open:
            return None
        count = 0
        try:
            while count < len(view):  # one send takes one record at most
                count += self.pollable.send(view[count:])
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return count or None
        except OSError as error:
            self._broke(error)
        return count

    def _broke(self, error: BaseException) -> None:
        """Note that reading or writing has failed."""

    def close(self) -> None:
        """Say goodbye in TLS's words where that is possible at once, and close the socket."""
        try:
            if self.open:
                self.pollable.unwrap()
        except (OSError, ValueError):
            pass  # without waiting for the peer's goodbye
        self.pollable.close()

    def identities(self) -> list[str]:
        """The names in the peer's certificate: its distinguished name as RabbitMQ writes it, and its common name. None: an empty list."""
        certificate = self.pollable.getpeercert() if self.open else None
        return names_of(certificate.get("subject", ())) if certificate else []

    def _shake_hands(self) -> int | None:
        """1: done; None: not yet; 0: failed."""
        self.needs = 0
        try:
            self.pollable.do_handshake()
        except ssl.SSLWantReadError:
            return None
        except ssl.SSLWantWriteError:
            self.needs = select.POLLOUT
            return None
        except (ssl.SSLEOFError, ConnectionError):
            return 0
        except OSError as error:
            self.refused(self, getattr(error, "verify_message", "") or reason(error))
            return 0
        self.open = True
        return 1


class TlsClientStream(TlsStream):
    """A connecting socket that becomes TLS when it is connected; `server_name`: the name in the broker's certificate.

    `failure`: the reason for no TLS, in words, once it is known; `hint`: a likely reason when the broker only ends the connection: its
    alert is lost when our octets arrive after its close.
    """

    hint = ", only TLS: perhaps it wants a client certificate, or another one (cert=FILE&key=FILE in the URL)"

    def __init__(self, connecting: socket.socket, name: str, context: ssl.SSLContext, server_name: str | None) -> None:
        self._context = context
        self._server_name = server_name
        self._connected = False
        self.failure = ""
        TlsStream.__init__(self, connecting, name, False, "", context, self._failed)
        self.needs = select.POLLOUT

    def _wrapped(self, connecting: socket.socket, context: ssl.SSLContext) -> socket.socket:
        return connecting  # TLS can begin only on a connected socket

    def _failed(self, stream: "TlsStream", text: str) -> None:
        hint = "".join("; " + hint for word, hint in HINTS if word in text)
        self.failure = f"TLS with {self.name} ({self._server_name}) failed: {text}{hint}"

    def _broke(self, error: BaseException) -> None:
        """With TLS 1.3 a broker refuses our certificate behind the handshake: in an alert, perhaps still unread."""
        if not isinstance(error, ssl.SSLError):
            try:
                self.pollable.recv(1)
            except OSError as behind:
                error = behind
        if isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or ""):
            self._failed(self, "the broker says: " + reason(error).partition("alert ")[2])

    def _shake_hands(self) -> int | None:
        """1: done; None: not yet; 0: failed."""
        if not self._connected:
            try:
                self.pollable.getpeername()
            except OSError:
                if self.pollable.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                    return 0
                self.needs = select.POLLOUT
                return None
            try:
                self.pollable = self._context.wrap_socket(self.pollable, do_handshake_on_connect=False, server_hostname=self._server_name)
            except (OSError, ValueError) as error:
                self._failed(self, str(error))
                return 0
            self._connected = True
        return TlsStream._shake_hands(self)

    def close(self) -> None:
        """As TlsStream; a socket that never became TLS is just closed."""
        if self._connected:
            TlsStream.close(self)
        else:
            self.pollable.close()


def names_of(subject: Sequence[Any]) -> list[str]:
    """[distinguished name, common name] of a certificate's subject as the ssl module gives it; the last part comes first (RFC 4514)."""
    parts = []
    common = []
    for group in reversed(subject):
        parts.append("+".join(SHORT.get(name, name) + "=" + escaped(value) for name, value in group))
        common += [value for name, value in group if name == "commonName"]
    return [",".join(parts)] + common[:1] if parts else []


def escaped(value: str) -> str:
    """A value in a distinguished name (RFC 4514 section 2.4)."""
    text = "".join("\\" + letter if letter in ',+"\\<>;' else letter for letter in value)
    if text[:1] in (" ", "#"):
        text = "\\" + text
    return text[:-1] + "\\ " if value[1:].endswith(" ") else text
