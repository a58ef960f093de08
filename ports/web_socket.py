"""AMQP over WebSocket (RFC 6455; OASIS AMQP WebSocket Binding 1.0): a layer under any endpoint, over a stream of tcp.py or tls.py.

    GET ... Upgrade: websocket, Sec-WebSocket-Protocol: amqp      101, the same subprotocol      binary messages, both ways

The octets of AMQP, of any version, are the payload of binary messages; where a frame or a message of WebSocket begins or ends says nothing
of AMQP's frames (binding, section 2). wsproto reads and writes the frames. Laws: nothing waits. At most READ_SIZE octets lie between the
socket and the endpoint in each direction, whatever a peer says of the size of its frames; a handshake has HANDSHAKE_MAX octets and
login_timeout_ms; of pings that come before one can be answered the last is answered (section 5.5.3). The server accepts no extension, so no
octet of a peer's becomes many. A client that offers subprotocols, none of which is AMQP's, is refused; one that offers none is served
(CloudAMQP's).
"""

import select
from collections.abc import Callable
from typing import Any

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Event, Ping, RejectConnection, Request, TextMessage
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import RemoteProtocolError

SUBPROTOCOLS = ("amqp", "AMQPWSB10")  # the second: the name in the binding's draft, which Azure's clients use
READ_SIZE = 16384  # octets that are read, and that are sent as one message, at a time
HANDSHAKE_MAX = 8192  # octets of a request
REFUSALS = {400: "Bad Request", 426: "Upgrade Required", 431: "Request Header Fields Too Large"}
MEMORY = 4 * READ_SIZE + 8192  # octets of a connection: read and not accepted, a message not sent, wsproto's own; see tools/memory.py

_scratch = bytearray(READ_SIZE)


class WebSocketStream:
    """Over `inner`, an accepted stream. `refused(stream, text)` is called when the handshake fails."""

    def __init__(self, inner: Any, refused: Callable[["WebSocketStream", str], object]) -> None:
        self.inner = inner
        self.name: str = inner.name
        self.from_loopback: bool = inner.from_loopback
        self.address: str = inner.address
        self.refused = refused
        self._web = WSConnection(ConnectionType.SERVER)
        self._asked = 0  # octets of the handshake
        self._open = False
        self._ended = False  # no more octets come or go, except those that wait for sending
        self._came = b""  # payload that the endpoint has no room for yet
        self._waits = b""  # octets for the peer that the socket has no room for yet
        self._pong = b""  # the answer to the last ping

    @property
    def pollable(self) -> Any:
        """The object for poll: TLS may have put itself around the socket meanwhile."""
        return self.inner.pollable

    @property
    def needs(self) -> int:
        """The events that the socket's state does not show; waiting octets are written now where the socket has room."""
        self._flush()
        needs: int = getattr(self.inner, "needs", 0)
        if self._came or self._ended and not self._waits:
            needs |= select.POLLIN
        return needs | (select.POLLOUT if self._waits else 0)

    def identities(self) -> list[str]:
        """The names in the peer's certificate."""
        return self.inner.identities() if hasattr(self.inner, "identities") else []

    def read_into(self, view: memoryview | bytearray) -> int | None:
        """Octets read; 0: the peer is gone; None: nothing now."""
        if not self._flush():
            return 0
        if not self._came and not self._ended:
            with memoryview(_scratch) as room:
                count = self.inner.read_into(room)
                if count == 0:
                    return 0
                if count is not None:
                    self._process(bytes(room[:count]))
            if not self._flush():
                return 0
        if self._came:
            size = min(len(view), len(self._came))
            view[:size] = self._came[:size]
            self._came = self._came[size:]
            return size
        if self._waits or not self._ended:
            return None
        with memoryview(_scratch) as room:
            self.inner.read_into(room)  # closing a socket with unread octets would discard the last ones sent
        return 0

    def write(self, view: memoryview | bytearray) -> int | None:
        """Octets written; None: none now; 0: the peer is gone."""
        if not self._flush():
            return 0
        if self._waits or not self._open:
            return None
        if self._ended:
            return 0
        count = 0
        while count < len(view) and not self._waits:
            octets = bytes(view[count : count + READ_SIZE])
            self._waits = self._web.send(BytesMessage(data=octets))
            count += len(octets)
            if not self._flush():
                return 0
        return count

    def close(self) -> None:
        """Say goodbye in WebSocket's words where that is possible at once, and close the stream."""
        if self._open and not self._ended and self._flush() and not self._waits:
            self._waits = self._web.send(CloseConnection(code=CloseReason.NORMAL_CLOSURE))
            self._flush()
        self.inner.close()

    # Inside

    def _process(self, octets: bytes) -> None:
        """Process octets of the peer: the handshake, frames."""
        if not self._open:
            self._asked += len(octets)
        try:
            self._web.receive_data(octets)
            for event in self._web.events():
                self._process_event(event)
                if self._ended:
                    return
        except RemoteProtocolError as error:
            self._fail(str(error), error.event_hint)
        except UnicodeError:
            self._fail("a header that is no text", None)
        if not self._open and not self._ended and self._asked > HANDSHAKE_MAX:
            self._fail(f"a request of more than {HANDSHAKE_MAX} octets", RejectConnection(status_code=431))

    def _process_event(self, event: Event) -> None:
        """Process an event of wsproto."""
        if isinstance(event, BytesMessage):
            self._came += bytes(event.data)
        elif isinstance(event, Request):
            self._answer(event)
        elif isinstance(event, Ping):
            self._pong = self._web.send(event.response())
        elif isinstance(event, CloseConnection):
            self._waits += self._web.send(event.response())
            self._ended = True
        elif isinstance(event, TextMessage):
            self._fail("a text message", CloseConnection(code=CloseReason.UNSUPPORTED_DATA, reason="AMQP is binary"))

    def _answer(self, request: Request) -> None:
        """Accept a client's request, or refuse it."""
        chosen = next((name for name in SUBPROTOCOLS if name in request.subprotocols), None)
        if self._asked > HANDSHAKE_MAX:
            self._fail(f"a request of more than {HANDSHAKE_MAX} octets", RejectConnection(status_code=431))
        elif chosen is None and request.subprotocols:
            self._fail("it offers other subprotocols than amqp", RejectConnection(status_code=400))
        else:
            self._waits += self._web.send(AcceptConnection(subprotocol=chosen))
            self._open = True

    def _fail(self, text: str, event: Event | None) -> None:
        """End, for a fault of the peer's, with an answer: a refusal of the handshake, or a close with its code."""
        if not self._open:
            self.refused(self, text)
            code = event.status_code if isinstance(event, RejectConnection) else 400
            head = f"HTTP/1.1 {code} {REFUSALS.get(code, 'Refused')}\r\nContent-Type: text/plain\r\nContent-Length: {len(text) + 1}\r\n"
            version = "Sec-WebSocket-Version: 13\r\n" if code == 426 else ""
            self._waits += f"{head}{version}Connection: close\r\n\r\n{text}\n".encode("latin-1", "replace")
        else:
            answer = event if isinstance(event, CloseConnection) else CloseConnection(code=CloseReason.PROTOCOL_ERROR)
            self._waits += self._web.send(answer)
        self._ended = True

    def _flush(self) -> bool:
        """Write waiting octets, as many as the socket has room for; false: the peer is gone."""
        while self._waits or self._pong:
            if not self._waits:
                self._waits, self._pong = self._pong, b""
            count = self.inner.write(memoryview(self._waits))
            if count == 0:
                self._waits = self._pong = b""
                self._ended = True
                return False
            if count is None:
                return True
            self._waits = self._waits[count:]
        return True
