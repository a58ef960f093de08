"""A client's URL: every part of it, the last value that is good and the first that is not (ports/url.py)."""

import pytest

from leveret.ports.url import check_host, read_url, unquote, without_login


def parts(url):
    found = read_url(url)
    return found.host, found.port, found.user, found.password, found.virtual_host


@pytest.mark.parametrize(
    "url, expected",
    [
        ("amqp://", ("127.0.0.1", 5672, "guest", "guest", "/")),
        ("amqp://h", ("h", 5672, "guest", "guest", "/")),
        ("amqp://h/", ("h", 5672, "guest", "guest", "/")),
        ("amqp://h:1", ("h", 1, "guest", "guest", "/")),
        ("amqp://h:65535/v", ("h", 65535, "guest", "guest", "v")),
        ("amqp://u@h", ("h", 5672, "u", "", "/")),
        ("amqp://u:@h", ("h", 5672, "u", "", "/")),
        ("amqp://@h", ("h", 5672, "", "", "/")),
        ("amqp://u:p:q@h/%2Fa%20b", ("h", 5672, "u", "p:q", "/a b")),
        ("amqp://u%40x:p%3a%C3%A9@h", ("h", 5672, "u@x", "p:é", "/")),
        ("amqp://u:p@[::1]:7/v", ("::1", 7, "u", "p", "v")),
        ("amqp://[fe80::2]", ("fe80::2", 5672, "guest", "guest", "/")),
        ("amqps://h", ("h", 5671, "guest", "guest", "/")),
        ("amqps://h:9/", ("h", 9, "guest", "guest", "/")),
        ("amqp://broker.example.", ("broker.example.", 5672, "guest", "guest", "/")),
    ],
)
def test_what_is_left_out_is_the_usual(url, expected):
    assert parts(url) == expected


@pytest.mark.parametrize(
    "url, sentence",
    [
        ("http://u:secret@h/", "not an amqp:// or amqps:// URL: http://...@h/"),
        ("h", "not an amqp:// or amqps:// URL: h"),
        ("amqp://h:0", "port '0' is not a number from 1 to 65535"),
        ("amqp://h:65536", "port '65536' is not"),
        ("amqp://h:000001", "port '000001' is not"),
        ("amqp://h:x", "port 'x' is not"),
        ("amqp://h:-1", "port '-1' is not"),
        ("amqp://h h/", "has a character that no host has"),
        ("amqp://a..b/", "is no name"),
        ("amqp://u:%4@h/", "behind a % come two hexadecimal digits"),
        ("amqp://u:%zz@h/", "behind a % come two hexadecimal digits"),
        ("amqp://u:%ff@h/", "is not UTF-8"),
        ("amqp://" + "u" * 200 + ":" + "p" * 201 + "@h", "have 400 characters together"),
        ("amqp://h/" + "v" * 256, "the virtual host has 255 octets"),
        ("amqp://h/?ca=f", "there is no setting 'ca'"),
        ("amqps://h/?nothing=f", "there is no setting 'nothing' in a client's URL; amqps:// has ca, cert, key, name, auth"),
        ("amqps://h/?cert=f", "needs both cert and key"),
        ("amqps://h/?key=f", "needs both cert and key"),
        ("amqps://h/?auth=external", "auth can only be external, and needs cert and key"),
        ("amqps://h/?cert=c&key=k&auth=plain", "auth can only be external"),
        ("amqps://h/?ca=%00", "ca has a NUL"),
    ],
)
def test_what_is_wrong_is_one_sentence_without_the_password(url, sentence):
    with pytest.raises(ValueError) as told:
        read_url(url)
    assert sentence in str(told.value) and "secret" not in str(told.value)


def test_the_longest_log_in_and_virtual_host():
    assert len(parts("amqp://" + "u" * 200 + ":" + "p" * 200 + "@h")[2]) == 200
    assert parts("amqp://h/" + "é" * 127 + "v")[4] == "é" * 127 + "v"
    with pytest.raises(ValueError):
        read_url("amqp://h/" + "é" * 128)


def test_certificates_are_asked_for_by_name():
    plain, secure = read_url("amqp://h"), read_url("amqps://h/?ca=/a%20b&cert=c&key=k&name=other&auth=external")
    assert plain.tls is None and not plain.external
    assert secure.tls == {"ca": "/a b", "cert": "c", "key": "k", "name": "other"} and secure.external
    assert read_url("amqps://h").tls == {"ca": None, "cert": None, "key": None, "name": "h"}
    assert not read_url("amqps://h/?cert=c&key=k").external
    assert secure.login() == {"user": "guest", "password": "guest", "virtual_host": "/", "mechanism": "EXTERNAL"}
    assert plain.login()["mechanism"] == "PLAIN"


def test_a_place_and_a_url_for_messages():
    assert read_url("amqp://h:7").place() == "h:7" and read_url("amqp://[::1]:7").place() == "[::1]:7"
    assert without_login("amqp://u:p@h:1/v") == "amqp://...@h:1/v" and without_login("amqp://h/") == "amqp://h/"
    assert without_login("amqp://u:p@x@h/") == "amqp://...@h/"


def test_a_name_has_labels_of_1_to_63_octets_and_253_at_most():
    long = ".".join(["a" * 63] * 3) + "." + "b" * 61
    for good in ("h", "a.b", "a.b.", "a" * 63 + ".b", long, "::1", "a" * 63):
        check_host(good)
    for bad in (".", "a..b", ".a", "a.b..", "a" * 64 + ".b", long + "b", "a" * 64, "a/b", "a\\b", "a?b", "a#b", "a@b", "a b", "a\tb"):
        with pytest.raises(ValueError):
            check_host(bad)


def test_percent_and_digits():
    assert unquote("") == "" and unquote("a%41%7ez%C3%A9") == "aA~zé" and unquote("%25") == "%"
    for bad in ("%", "%4", "a%4g", "%%41", "%é1"):
        with pytest.raises(ValueError, match="two hexadecimal digits"):
            unquote(bad)
