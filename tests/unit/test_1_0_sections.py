"""The sections of messages of AMQP 1.0 (section 3.2): golden octets, every split, what is refused."""

from leveret.core.amqp_1_0 import sections
from leveret.core.errors import ProtocolError
from leveret.core.memory import layout


def octets(text):
    return bytes.fromhex(text.replace(" ", ""))


# By python3-qpid-proton: durable, priority 7, ttl 5 s, an annotation of each kind, id 4, to "/q", subject "s", three application properties
HEADS = octets(
    "005370 c00903415007700000 1388"
    "005371 d1 00000009 00000002 a30179 5501"
    "005372 d1 0000000b 00000002 a303782d61 5501"
    "005373 c00b04 5304 40 a1022f71 a10173"
    "005374 d1 0000001b 00000006 a10161 5501 a10162 a10178 a10163 824000000000000000"
)
DATA = octets("005375 a003 616263")
VALUE = octets("005377 a104 74657874")
KIND = 2 | layout.KIND_DURABLE | layout.KIND_HAS_PRIORITY | 7 << layout.KIND_PRIORITY | layout.KIND_FOR_US


def refused(given, whole=True):
    try:
        sections.split(given, 0, len(given), whole)
    except ProtocolError as error:
        return error.text
    raise AssertionError("it is accepted")


def test_split():
    message = HEADS + DATA
    assert sections.split(message, 0, len(message)) == (len(HEADS) + 5, KIND, 5000)
    assert sections.data_head(message[: len(HEADS) + 5]) == (len(HEADS), 3)
    message = b"xy" + HEADS + VALUE + b"z"
    assert sections.split(message, 2, len(message) - 1) == (2 + len(HEADS), KIND, 5000)
    assert sections.data_head(HEADS) is None
    assert sections.split(HEADS, 0, len(HEADS)) == (len(HEADS), KIND, 5000)
    assert sections.split(b"", 0, 0) == (0, 2, layout.NONE)
    assert sections.address(HEADS) == ("/q", "s", None)


def test_every_split():
    for body, known_at in ((DATA, 5), (VALUE, 3)):
        message = HEADS + body
        for size in range(len(message)):
            found = sections.split(message, 0, size, False)
            assert (found is None) == (size < len(HEADS) + known_at), size
            if size not in boundaries():
                assert refused(message[:size])


def boundaries():
    """The ends of sections: a message may end there."""
    ends = [0]
    while ends[-1] < len(HEADS):
        code, value = sections.descriptor(HEADS, ends[-1], len(HEADS))
        _, start, size = sections.head(code, HEADS, value, len(HEADS))
        ends.append(start + size)
    return ends


def test_order():
    header, properties = octets("005370 45"), octets("005373 45")
    assert refused(header + header) == "a message has two sections header"
    assert refused(properties + header) == "the section header stands behind properties"
    assert "0x6f" in refused(octets("00536f 45"))
    assert refused(octets("005370 c10100")) == "the section header is a list, and not what the constructor 0xc1 begins"
    assert sections.split(octets("00 80 0000000000000070 45 00 a3 10 616d71703a646174613a62696e617279 a000"), 0, 32)[0] == 32


def test_the_address_is_read_alone():
    for fields, expected in (
        ("45", (None, None, None)),
        ("c00201 44", (None, None, None)),
        ("d0000000050000000140", (None, None, None)),
        ("c00903 40 a00175 a1022f71", ("/q", None, b"u")),
        ("c00805 404040 a10173 40", (None, "s", None)),
    ):
        assert sections.address(octets("005370 45 005373" + fields + "005374 c10100")) == expected
