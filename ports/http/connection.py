"""One HTTP/1.1 connection: an endpoint of the loop (core/DESIGN.md section 1) around h11, one request at a time.

    waiting -> head -> log-in -> body -> at work -> answering -> waiting again, or closed

Laws: nothing waits, and nothing a peer does raises. A head has HEAD_MAX octets and HEAD_MS, a body BODY_MAX octets and BODY_MS, all bodies
together BODIES_MAX (server.py), which counts them until their requests are answered; a body is read behind the log-in, and of who has not
logged in none is. An answer is made piece by piece as the peer takes it: at most one piece waits. A peer that takes nothing for STALL_MS is
closed. While a request is answered, until its last octet has gone, its peer is not read, and what came with it waits for a turn of `work`.
"""

from collections.abc import Iterator
from typing import Any

import h11

from ...core.errors import ProtocolError
from ...core.shim import elapsed
from . import answers, gzip
from .answers import Answer, Piece, Refused
from .credentials import Peer, name_and_password

READ_SIZE = 16384
HEAD_MAX = 16384  # octets; h11 refuses more with 431
BODY_MAX = 8 << 20
HEAD_MS = 10000
BODY_MS = 30000
IDLE_MS = 60000
STALL_MS = 30000
LINGER_MS = 1000  # for octets that a refused peer still sends: closing at once would discard the answer
EMPTY = memoryview(b"")
WITHOUT_BODY = (204, 304)

_scratch = bytearray(READ_SIZE)


class HttpConnection:
    """`server`: server.HttpServer; `stream`: the peer."""

    def __init__(self, server: Any, stream: Any) -> None:
        self.server = server
        self.stream = stream
        self.name: str = stream.name
        self.closed = False
        self.is_fresh = False  # octets wait that the loop has not seen
        self.user: Any = None
        self.is_of_page = False  # the page sends this request, which has a log-in of its own
        self._http = h11.Connection(h11.SERVER, HEAD_MAX)
        self._request: Any = None
        self._body = bytearray()
        self._body_size = 0
        self._login: Peer | None = None
        self._header = b""  # Authorization
        self._encodings = ""  # Accept-Encoding
        self._work: Any = None  # a generator that makes the Answer
        self._answer: Answer | None = None  # waits until the log has got so far
        self._pieces: Iterator[Piece] | None = None  # of the answer that is on its way
        self._out = EMPTY
        self._ending = False  # no further request
        self._resumes = False  # h11 may have more of the peer's octets, for when the answer has gone
        self._is_last = False  # the answer that is on its way is the last, to a whole request
        self._discards = False  # octets that come are of no interest
        self._since: int = server.broker.now  # of the state that has a limit
        self._moved: int = server.broker.now  # octets went out
        server.connections.append(self)

    # The endpoint contract

    def writable(self) -> memoryview:
        """The region to receive into; empty while a request is answered."""
        if self.closed or not (self._discards or self._is_reading()):
            return EMPTY
        return memoryview(_scratch)

    def received(self, count: int) -> None:
        """`count` octets were received; 0: the peer is gone."""
        if self.closed:
            return
        if count == 0:
            self.close()
        elif not self._discards:
            if self._request is None and not self._http.trailing_data[0]:
                self._since = self.server.broker.now
            self._http.receive_data(bytes(_scratch[:count]))
            self._advance()

    def pending(self) -> memoryview:
        """The octets that wait to be sent."""
        self.is_fresh = False
        return self._out

    def sent(self, count: int) -> None:
        """`count` octets were sent."""
        self._out = self._out[count:]
        self._moved = self.server.broker.now
        if self._is_last and not len(self._out):
            self.close()

    def tick(self, now: int) -> None:
        """Time passes."""
        if self.closed:
            return
        if self._login is not None:
            self._login.tick(now)
        elif len(self._out):
            if elapsed(now, self._moved) > STALL_MS:
                self.close()
        elif self._discards:
            if elapsed(now, self._since) > LINGER_MS:
                self.close()
        elif self._is_reading():
            self._check_time(elapsed(now, self._since))

    def broke(self, error: Exception) -> None:
        """An error of ours: told, and this connection ends."""
        self.server.broker.guard.trouble("HTTP %s", self.name, error)
        self.close()

    def close(self) -> None:
        """End at once."""
        if not self.closed:
            self.closed = True
            self._out = EMPTY
            self._drop_body()
            self._work = self._pieces = self._answer = None
            if self._login is not None:
                self._login.closed, self._login.state = True, "closed"
            self.server.connections.remove(self)

    # Called by the server

    def is_answering(self) -> bool:
        """True while a request is at work or its answer is on its way."""
        return self._work is not None or self._answer is not None or self._pieces is not None or len(self._out) > 0

    def wants_work(self) -> bool:
        """True when `work` would do something now."""
        if self._answer is not None:
            return bool(self.server.is_durable(self._answer.number))
        return self._work is not None or (self._pieces is not None or self._resumes) and not len(self._out)

    def work(self) -> None:
        """Do a bounded piece of the request's work."""
        if self._answer is not None:
            answer, self._answer = self._answer, None
            self._send(answer)
        elif self._work is not None:
            self._go_on()
        elif self._pieces is not None and not len(self._out):
            self._next_piece()
        elif self._resumes and not len(self._out):
            self._resumes = False
            self._since = self.server.broker.now
            self._advance()

    # Inside: reading

    def _is_reading(self) -> bool:
        is_idle = self._login is None and self._work is None and self._answer is None and self._pieces is None
        return is_idle and not self._ending and not len(self._out)

    def _check_time(self, passed_ms: int) -> None:
        """End a connection that has been idle, or a request that comes too slowly."""
        if self._request is not None:
            if passed_ms > BODY_MS:
                self._refuse(Refused(408, "request_timeout", "the body did not come"))
        elif self._http.trailing_data[0]:
            if passed_ms > HEAD_MS:
                self._refuse(Refused(408, "request_timeout", "the request did not come"))
        elif passed_ms > IDLE_MS:
            self.close()

    def _advance(self) -> None:
        """Process events of the peer until one is incomplete, or a request is at work."""
        try:
            while self._is_reading() and not self.closed:
                event = self._http.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED:
                    if self._http.they_are_waiting_for_100_continue and self._request is not None:
                        self._write(h11.InformationalResponse(status_code=100, headers=[]))
                    return
                if isinstance(event, h11.Request):
                    self._begin(event)
                elif isinstance(event, h11.Data):
                    self._receive(bytes(event.data))
                elif isinstance(event, h11.EndOfMessage):
                    self._dispatch()
                else:
                    self.close()
        except h11.RemoteProtocolError as error:
            status = error.error_status_hint if error.error_status_hint in answers.REASONS else 400
            self._refuse(Refused(status, "bad_request", str(error)))
        except Refused as refused:
            self._refuse(refused)

    def _begin(self, request: Any) -> None:
        """The head of a request."""
        self._request = request
        self._since = self.server.broker.now
        names = [name for name, _ in request.headers]
        if b"content-length" in names and b"transfer-encoding" in names:  # RFC 9112 section 6.1: perhaps smuggled
            raise Refused(400, "bad_request", "a request with Content-Length has no Transfer-Encoding")
        for name, value in request.headers:
            if name == b"content-length" and int(value) > BODY_MAX:
                raise too_large()
        self._encodings = b",".join([value for name, value in request.headers if name == b"accept-encoding"]).decode("latin-1")
        self._header = next((value for name, value in request.headers if name == b"authorization"), b"")
        self.is_of_page = b"x-leveret-page" in names
        self.user = None
        if not self._header:
            cookies = b";".join([value for name, value in request.headers if name == b"cookie"]).decode("latin-1")
            if cookies:
                self.user = self.server.sessions.user(cookies, self.stream)
            return
        user = self.server.known.user(self.stream, self._header)
        if user is not None:
            self.user = user
            return
        name, password = name_and_password(self._header)
        self._login = Peer(self.server.broker, self.stream, self._judged)
        self._login.begin(name, password)

    def _judged(self, user: Any) -> None:
        """The log-in has come to its end."""
        self._login = None
        if self.closed:
            return
        self.user = user
        if user is None:
            self._ending = True
            self._send(answers.not_logged_in("Login failed", not self.is_of_page))
            return
        self.server.known.add(self.stream, self._header, user)
        self._since = self.server.broker.now
        if self._http.their_state is not h11.IDLE:
            self._advance()

    def _receive(self, octets: bytes) -> None:
        """A part of the body."""
        if self.user is None:
            self._ending = True
            self._send(answers.not_logged_in(asks=not self.is_of_page))
            return
        self._body_size += len(octets)
        self.server.body_size += len(octets)
        self._body += octets
        if self._body_size > BODY_MAX:
            raise too_large()
        if self.server.body_size > self.server.bodies_max:
            raise Refused(503, "service_unavailable", "too many large requests at a time")

    def _drop_body(self) -> None:
        self.server.body_size -= self._body_size
        self._body, self._body_size = bytearray(), 0

    def _dispatch(self) -> None:
        """The request is whole."""
        request = self._request
        body, self._body = bytes(self._body), bytearray()
        try:
            headers = {name.decode("ascii"): value.decode("latin-1") for name, value in request.headers}
            made = self.server.answer(self, request.method.decode("ascii"), request.target, body, headers)
        except Refused as refused:
            made = refused.answer()
        if isinstance(made, Answer):
            self._ready(made)
        else:
            self._work = made

    # Inside: answering

    def _go_on(self) -> None:
        """Let the function of the request go on to its next stop."""
        try:
            next(self._work)
            return
        except StopIteration as end:
            made: Answer = end.value
        except Refused as refused:
            made = refused.answer()
        except ProtocolError as error:
            made = answers.refusal(error).answer()
        except Exception as error:  # an error of ours: told, and the peer hears of it
            self.server.broker.guard.trouble("a request of HTTP %s", self.name, error)
            made = Refused(500, "internal_error", "an error of this broker: see its log").answer()
        self._work = None
        self._ready(made)

    def _ready(self, answer: Answer) -> None:
        """An answer waits for the log, or is sent."""
        self._drop_body()
        if self.server.is_durable(answer.number):
            self._send(answer)
        else:
            self._answer = answer

    def _refuse(self, refused: Refused) -> None:
        """Answer a request that is no good, or not whole, and end."""
        self._ending = True
        self._drop_body()
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self._send(refused.answer())
        else:
            self.close()

    def _send(self, answer: Answer) -> None:
        """Begin to send an answer."""
        if self._request is not None and gzip.is_asked_for(self._encodings):
            answer = gzip.made(answer)
        headers = [("server", "Leveret"), *self.server.headers, *answer.headers]
        if answer.status not in WITHOUT_BODY:
            headers.append(("content-type", answer.kind))
            if isinstance(answer.body, bytes):
                headers.append(("content-length", str(len(answer.body))))
        if self._ending:
            headers.append(("connection", "close"))
        self._moved = self.server.broker.now
        self._write(h11.Response(status_code=answer.status, headers=headers, reason=answers.REASONS.get(answer.status, "")))
        if self.closed:
            return
        body = answer.body
        if self._request is not None and self._request.method == b"HEAD":
            self._complete()
        elif isinstance(body, bytes):
            if body:
                self._write(h11.Data(data=body))
            self._complete()
        else:
            self._pieces = iter(body)

    def _next_piece(self) -> None:
        """Send the next piece of an answer."""
        try:
            piece = next(self._pieces)  # type: ignore[arg-type]  # the caller has seen that there are some
        except StopIteration:
            self._pieces = None
            self._complete()
            return
        except Exception as error:  # an error of ours: the answer ends in its middle, which the peer sees
            self.broke(error)
            return
        if piece:
            self._write(h11.Data(data=piece))

    def _complete(self) -> None:
        """The answer is out; the next request may come."""
        is_whole = self._http.their_state is not h11.SEND_BODY and self._request is not None
        self._write(h11.EndOfMessage())
        if self.closed:
            return
        self._request = None
        self._since = self.server.broker.now
        if self._http.our_state is h11.DONE and self._http.their_state is h11.DONE and not self._ending:
            self._http.start_next_cycle()
            self._resumes = True
            return
        self._ending = self._discards = True
        self._is_last = is_whole

    def _write(self, event: Any) -> None:
        """Add an event's octets to those that wait."""
        try:
            octets = self._http.send(event)
        except h11.LocalProtocolError as error:
            self.broke(error)
            return
        if octets:
            self._out = memoryview(bytes(self._out) + octets)
            self.is_fresh = True


def too_large() -> Refused:
    """The refusal of a body."""
    return Refused(413, "content_too_large", f"this broker takes bodies of {BODY_MAX} octets")
