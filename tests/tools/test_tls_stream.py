"""What a TLS stream tells the loop (core/DESIGN.md section 2), where OpenSSL wants to read before it writes, or the other way round."""

import select
import socket
import ssl

import pytest

from leveret.ports.tls import Certificates, TlsClientStream, TlsFailed, TlsStream, client_context, escaped, names_of, reason


class Secure:
    """An ssl.SSLSocket whose calls do in turn what `script` says: each raises an exception, or returns a number of octets."""

    def __init__(self, *script):
        self.script = list(script)
        self.calls = []
        self.left = 0  # octets decrypted and not read yet

    def setblocking(self, blocks):
        self.blocks = blocks

    def play(self, call):
        self.calls.append(call)
        done = self.script.pop(0) if self.script else ssl.SSLWantReadError()
        if isinstance(done, Exception):
            raise done
        return done

    def do_handshake(self):
        self.play("do_handshake")

    def recv_into(self, view):
        size = self.play("recv_into")
        view[:size] = b"x" * size
        return size

    def send(self, view):
        return min(self.play("send"), len(view))

    def pending(self):
        return self.left

    def unwrap(self):
        self.play("unwrap")

    def getpeercert(self):
        return {"subject": ((("commonName", "peer"),),)}

    def close(self):
        self.calls.append("close")


class Stream(TlsStream):
    """A TlsStream over such a socket; `told`: what its `refused` was called with."""

    def __init__(self, *script, shaken=True):
        self.told = []
        TlsStream.__init__(self, Secure(*script), "peer", False, "192.0.2.1", None, lambda stream, text: self.told.append(text))
        self.open = shaken

    def _wrapped(self, connected, context):
        return connected


@pytest.fixture
def room():
    return memoryview(bytearray(10))


@pytest.mark.parametrize(
    "fault, answer, needs, said",
    [
        (ssl.SSLWantReadError(), None, 0, []),
        (ssl.SSLWantWriteError(), None, select.POLLOUT, []),
        (ssl.SSLEOFError(), 0, 0, []),
        (ConnectionResetError(), 0, 0, []),
        (ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER]"), 0, 0, ["[ssl: wrong version number]"]),
    ],
)
def test_a_handshake_that_is_not_done(room, fault, answer, needs, said):
    """The loop waits for what the handshake needs; a peer that just leaves is not worth a word."""
    stream = Stream(fault, shaken=False)
    stream.needs = select.POLLOUT
    assert stream.read_into(room) is answer or stream.told
    assert (stream.needs, [text.lower() for text in stream.told], stream.open, stream.identities()) == (needs, said, False, [])
    assert stream.write(memoryview(b"octets")) is None and stream.pollable.calls == ["do_handshake"] and not stream.pollable.blocks
    stream.close()
    assert stream.pollable.calls == ["do_handshake", "close"], "TLS's goodbye is said after a handshake alone"


def test_octets_are_read_as_soon_as_the_handshake_is_done(room):
    stream = Stream(None, 4, shaken=False)
    assert stream.read_into(room) == 4 and bytes(room[:4]) == b"xxxx" and stream.open and stream.identities()[-1] == "peer"
    stream.close()
    assert stream.pollable.calls == ["do_handshake", "recv_into", "recv_into", "unwrap", "close"]


@pytest.mark.parametrize(
    "script, left, answer, needs",
    [
        ((3, 4), 0, 7, 0),  # a record at a time
        ((3, 7), 5, 10, select.POLLIN),  # the view is full: OpenSSL holds more, of which poll knows nothing
        ((), 0, None, 0),
        ((), 2, None, select.POLLIN),
        ((ssl.SSLWantWriteError(),), 0, None, select.POLLOUT),
        ((2, ssl.SSLWantWriteError()), 3, 2, select.POLLOUT | select.POLLIN),
        ((0,), 0, 0, 0),
        ((5, 0), 4, 5, 0),  # what came before the end is read first
        ((ConnectionResetError(),), 0, 0, 0),
        ((6, ConnectionResetError()), 4, 6, 0),
    ],
)
def test_reading_goes_on_until_nothing_is_left_and_says_what_it_waits_for(room, script, left, answer, needs):
    stream = Stream(*script)
    stream.pollable.left, stream.needs = left, select.POLLOUT
    assert (stream.read_into(room), stream.needs) == (answer, needs)


@pytest.mark.parametrize(
    "script, answer",
    [
        ((4, 4), 6),
        ((4,), 4),
        ((), None),
        ((ssl.SSLWantWriteError(),), None),
        ((5, ssl.SSLWantWriteError()), 5),
        ((BrokenPipeError(),), 0),
        ((2, BrokenPipeError()), 2),
    ],
)
def test_writing_says_how_much_of_it_is_on_its_way(script, answer):
    assert Stream(*script).write(memoryview(b"octets")) == answer


def test_a_peer_that_is_gone_hinders_no_close():
    for fault in (OSError("gone"), ValueError("closed"), ssl.SSLWantReadError()):
        stream = Stream(fault)
        stream.close()
        assert stream.pollable.calls == ["unwrap", "close"]


class Connecting(Secure):
    """A client's socket: `error`: what its connection came to, or 0; `is_connected`: it has a peer; `behind`: what a read behind a
    failure raises, or None."""

    def __init__(self, *script, error=0, is_connected=True, behind=None):
        Secure.__init__(self, *script)
        self.error, self.is_connected, self.behind = error, is_connected, behind

    def getpeername(self):
        if not self.is_connected:
            raise OSError(107, "not connected")

    def getsockopt(self, level, option):
        assert (level, option) == (socket.SOL_SOCKET, socket.SO_ERROR)
        return self.error

    def recv(self, size):
        if self.behind:
            raise self.behind
        return b""


class Context:
    """Wraps a socket as itself; `asked`: with what; `error`: it cannot."""

    def __init__(self, error=None):
        self.error, self.asked = error, []

    def wrap_socket(self, connected, **options):
        if self.error:
            raise self.error
        self.asked.append(options)
        return connected


def client(*script, context=None, **options):
    return TlsClientStream(Connecting(*script, **options), "broker:5671", context or Context(), "broker.example")


def test_a_client_begins_tls_when_it_is_connected_and_not_before(room):
    stream = client(ssl.SSLWantReadError(), None, 3, is_connected=False)
    assert stream.needs == select.POLLOUT and (stream.from_loopback, stream.address) == (False, "")
    stream.needs = 0
    assert stream.read_into(room) is None and stream.needs == select.POLLOUT and not stream._context.asked
    stream.pollable.is_connected = True
    assert stream.read_into(room) is None and stream.needs == 0
    assert stream._context.asked == [{"do_handshake_on_connect": False, "server_hostname": "broker.example"}]
    assert stream.read_into(room) == 3 and len(stream._context.asked) == 1 and stream.failure == ""
    stream.close()
    assert stream.pollable.calls[-2:] == ["unwrap", "close"]


def test_a_client_that_is_refused_has_no_goodbye(room):
    stream = client(is_connected=False, error=111)
    assert stream.read_into(room) == 0 and stream.failure == "" and not stream._context.asked
    stream.close()
    assert stream.pollable.calls == ["close"]


def test_a_client_says_why_there_is_no_tls_and_what_may_help(room):
    def failed(*script, **options):
        stream = client(*script, **options)
        assert stream.read_into(room) == 0
        return stream.failure

    beginning = "TLS with broker:5671 (broker.example) failed: "
    assert failed(context=Context(ValueError("no name"))) == beginning + "no name"
    assert failed(context=Context(OSError("no file"))) == beginning + "no file"
    error = ssl.SSLError(1, "x")
    error.reason = "WRONG_VERSION_NUMBER"
    assert failed(error) == beginning + "wrong version number; perhaps its port is one without TLS: amqp://"
    error = ssl.SSLCertVerificationError(1, "x")
    error.verify_message = "self-signed certificate"
    assert failed(error) == beginning + "self-signed certificate; the authority's certificate is named with ca=FILE in the URL"


def test_an_alert_behind_the_handshake_is_told_also_when_it_is_still_unread(room):
    alert = ssl.SSLError(1, "x")
    alert.reason = "TLSV13_ALERT_CERTIFICATE_REQUIRED"
    said = "TLS with broker:5671 (broker.example) failed: the broker says: certificate required; "
    said += "it wants a client certificate: cert=FILE&key=FILE in the URL"
    other = ssl.SSLError(1, "x")
    other.reason = "BAD_LENGTH"
    nameless = ssl.SSLError(1, "x")
    nameless.reason = None
    for fault, behind, failure in (
        (alert, None, said),
        (ConnectionResetError(), alert, said),
        (ConnectionResetError(), None, ""),
        (ConnectionResetError(), ConnectionResetError(), ""),
        (other, None, ""),
        (nameless, None, ""),
        (other, alert, ""),  # a read behind it is for what is no word of TLS's
    ):
        stream = client(None, fault, behind=behind)
        assert stream.read_into(room) == 0 and stream.failure == failure
        stream = client(fault, behind=behind)
        stream.open = True
        assert stream.write(memoryview(b"octets")) == 0 and stream.failure == failure


def test_a_distinguished_name_is_written_as_rabbitmq_writes_it():
    """RFC 4514: sections 2.1 (the last part first), 2.2 (several of a part) and 2.4 (what is escaped)."""
    subject = (
        (("countryName", "DE"),),
        (("organizationName", "A, B"), ("1.2.3", "x")),
        (("commonName", "first"),),
        (("commonName", "last"),),
    )
    assert names_of(subject) == ["CN=last,CN=first,O=A\\, B+1.2.3=x,C=DE", "last"]
    assert names_of(((("countryName", "DE"),),)) == ["C=DE"] and names_of(()) == []
    texts = ('a,+"\\<>;=b', " a ", "#a", "a#", " ", "  ", "", "a b", "ab ")
    assert [escaped(each) for each in texts] == ['a\\,\\+\\"\\\\\\<\\>\\;=b', "\\ a\\ ", "\\#a", "a#", "\\ ", "\\ \\ ", "", "a b", "ab\\ "]


def test_the_word_for_an_error_is_openssls_then_the_systems_then_its_text():
    error = ssl.SSLError(1, "text")
    error.reason = "NO_SHARED_CIPHER"
    assert [reason(each) for each in (error, OSError(2, "No such file"), ValueError("A_b"))] == ["no shared cipher", "no such file", "a b"]


def test_files_that_are_no_certificates_are_named(tmp_path):
    none, empty = str(tmp_path / "none.pem"), tmp_path / "empty.pem"
    empty.write_text("")
    tls = {"ca": None, "cert": None, "key": None}
    assert client_context(tls).minimum_version == ssl.TLSVersion.TLSv1_2
    for given, said in (
        ({"ca": none}, f"the file {none} cannot be read: No such file or directory"),
        ({"key": none}, f"the file {none} cannot be read: No such file or directory"),
        ({"ca": str(empty)}, f"{empty} holds no certificate of an authority: "),
        ({"cert": str(empty), "key": str(empty)}, f"{empty} and {empty} are not a certificate and its key: "),
    ):
        with pytest.raises(TlsFailed) as failed:
            client_context({**tls, **given})
        assert str(failed.value).startswith(said)
    with pytest.raises(TlsFailed, match="are not a certificate and its key: "):
        Certificates(str(empty), str(empty))
    with pytest.raises(TlsFailed, match="cannot be read: No such file"):
        Certificates(str(empty), str(empty), none)
