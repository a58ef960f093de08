"""When a certificate ends, as the health check reads it from the file (ports/http/health.py): RFC 5280 section 4.1, DER of X.690."""

import base64
import calendar

import pytest

from leveret.ports.http import health

UTC_TIME, GENERALIZED_TIME, SEQUENCE, INTEGER = 0x17, 0x18, 0x30, 0x02


def item(tag, content):
    """A DER item, its size in the shortest form (X.690 section 10.1)."""
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    octets = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(octets))) + octets + content


def pem(tmp_path, ends, tag=UTC_TIME, version=True, issuer=b"", behind=b""):
    """The path of a file with a certificate that has only what stands before its end, and `behind`."""
    parts = item(0xA0, item(INTEGER, b"\x02")) if version else b""
    parts += item(INTEGER, b"\x01") + item(SEQUENCE, b"") + item(SEQUENCE, issuer)
    parts += item(SEQUENCE, item(UTC_TIME, b"200101000000Z") + item(tag, ends)) + behind
    text = base64.encodebytes(item(SEQUENCE, item(SEQUENCE, parts))).decode()
    path = tmp_path / "certificate.pem"
    path.write_text(f"a line before\n-----BEGIN CERTIFICATE-----\n{text}-----END CERTIFICATE-----\nanother\n")
    return str(path)


@pytest.mark.parametrize(
    "ends, tag, moment",
    [
        (b"500101000000Z", UTC_TIME, (1950, 1, 1, 0, 0, 0)),  # section 4.1.2.5.1: 50 to 99 are of the last century
        (b"991231235959Z", UTC_TIME, (1999, 12, 31, 23, 59, 59)),
        (b"000229010203Z", UTC_TIME, (2000, 2, 29, 1, 2, 3)),
        (b"491231235959Z", UTC_TIME, (2049, 12, 31, 23, 59, 59)),
        (b"20500101000000Z", GENERALIZED_TIME, (2050, 1, 1, 0, 0, 0)),  # section 4.1.2.5.2
        (b"99991231235959Z", GENERALIZED_TIME, (9999, 12, 31, 23, 59, 59)),  # section 4.1.2.5: no end that is known
    ],
)
def test_the_end_is_read_in_both_forms_of_time(tmp_path, ends, tag, moment):
    assert health.expiry_of(pem(tmp_path, ends, tag)) == calendar.timegm(moment)


def test_a_certificate_of_version_1_has_no_version(tmp_path):
    """Section 4.1: the version stands there only when it is not the default, v1."""
    assert health.expiry_of(pem(tmp_path, b"300102030405Z", version=False)) == calendar.timegm((2030, 1, 2, 3, 4, 5))


@pytest.mark.parametrize("size", (0, 1, 0x7F, 0x80, 0xFF, 0x100, 0xFFFF, 0x10000))
def test_sizes_of_any_form_are_passed_over(tmp_path, size):
    """X.690 section 8.1.3: up to 127 in one octet, else the count of the octets that follow."""
    path = pem(tmp_path, b"300102030405Z", issuer=bytes(size), behind=bytes(3))
    assert health.expiry_of(path) == calendar.timegm((2030, 1, 2, 3, 4, 5))


@pytest.mark.parametrize("text", ("", "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n", "no certificate", "é"))
def test_what_is_no_certificate_is_a_ValueError(tmp_path, text):
    path = tmp_path / "other.pem"
    path.write_text(text)
    with pytest.raises(ValueError):
        health.expiry_of(str(path))


class Call:
    """A request that has come to a health check."""

    def __init__(self, certificates, within, unit):
        self.server = self
        self.certificates = certificates
        self.names = {"within": within, "unit": unit}


@pytest.mark.parametrize("unit, seconds", [("days", 86_400), ("weeks", 604_800), ("months", 2_592_000), ("years", 31_536_000)])
def test_a_certificate_that_ends_within_the_time_fails_the_check(tmp_path, monkeypatch, unit, seconds):
    """The moment itself is no longer within it; a file that cannot be read is no certificate of the server's."""
    path = pem(tmp_path, b"300102030405Z")
    ends = calendar.timegm((2030, 1, 2, 3, 4, 5))
    for before, status in ((seconds + 1, 200), (seconds, 200), (seconds - 1, 503), (0, 503), (-9, 503)):
        monkeypatch.setattr(health.time, "time", lambda before=before: ends - before)
        answer = health.certificates(Call([path + ".none", path], "1", unit))
        assert answer.status == status, before
    assert b"2030-01-02T03:04:05Z" in answer.body and path.encode() in answer.body


@pytest.mark.parametrize("within, unit", [("1", "hours"), ("-1", "days"), ("", "days"), ("1.5", "days"), ("100000", "days"), ("²", "days")])
def test_what_is_no_time_is_refused(within, unit):
    with pytest.raises(health.answers.Refused) as refused:
        health.certificates(Call([], within, unit))
    assert refused.value.status == 400
    assert health.certificates(Call([], "99999", "years")).status == 200
