"""`leveret status` at a broker that does not let it in says why, and what to do: certificates, TLS where there is none, or none."""

import subprocess
import sys

import pytest
from test_serve import Serve

sys.path.insert(0, __file__.rsplit("/tests/", 1)[0] + "/tests/interop")
from certificates import Authority  # noqa: E402 - the path above has to be set first


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A broker with a plain port, one with TLS, and one where clients must have a certificate; an authority that it trusts, and another."""
    ours, other = Authority(tmp_path_factory.mktemp("ours")), Authority(tmp_path_factory.mktemp("other"))
    files = ours.issue("server", "/CN=localhost")
    server = Serve(
        "--listen",
        "amqp://127.0.0.1:0",
        "--listen",
        "amqps://127.0.0.1:0?cert=%s&key=%s" % files,
        "--listen",
        "amqps://127.0.0.1:0?cert=%s&key=%s&ca=%s&verify=peer" % (files + (ours.certificate,)),
        count=3,
    )
    ports = [int(url.rsplit(":", 1)[1]) for url in server.urls]
    yield dict(zip(("plain", "tls", "strict"), ports), ours=ours, other=other)
    server.end()


def told(url):
    """(exit status, standard error) of `leveret status`."""
    done = subprocess.run([sys.executable, "-m", "leveret.tools.cli", "status", url], capture_output=True, text=True, timeout=120)
    assert done.stderr.count("\n") <= 1 and "Traceback" not in done.stderr and "secret" not in done.stderr
    return done.returncode, done.stderr


def test_a_certificate_that_is_wanted_is_asked_for(world):
    """TLS 1.3 (RFC 8446 section 6.2): certificate_required comes behind the handshake, or is lost with the connection's reset."""
    lost = "no AMQP broker answers, only TLS: perhaps it wants a client certificate, or another one (cert=FILE&key=FILE in the URL)"
    url = "amqps://guest:secret@localhost:%d/?ca=%s" % (world["strict"], world["ours"].certificate)
    status, words = told(url)
    wanted = "certificate required; it wants a client certificate: cert=FILE&key=FILE in the URL"
    assert status == 1 and (lost in words or wanted in words), words
    files = world["other"].issue("stranger", "/CN=guest")
    status, words = told(url + "&cert=%s&key=%s" % files)
    assert status == 1 and (lost in words or "unknown ca; our certificate is not of an authority that it trusts" in words), words
    files = world["ours"].issue("client", "/CN=guest")
    assert told(url.replace("secret", "guest") + "&cert=%s&key=%s" % files) == (0, "")


def test_tls_where_there_is_none_and_none_where_there_is_and_an_authority_that_is_not_known(world):
    assert "perhaps its port is one without TLS: amqp://" in told("amqps://guest:secret@localhost:%d/" % world["plain"])[1]
    for name in ("tls", "strict"):
        status, words = told("amqp://guest:secret@localhost:%d/" % world[name])
        assert status == 1 and "no AMQP broker answers; perhaps its port is one with TLS: amqps://" in words, words
    assert "the authority's certificate is named with ca=FILE in the URL" in told("amqps://guest:secret@localhost:%d/" % world["tls"])[1]
