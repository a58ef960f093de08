"""The table of versions that core/SPEC.md begins with: a header of a row is served as the version of its row, on the listener that the row
says; each version has a row, and a row that says so has a client. What no row has is answered with 0-9-1's header, and the stream ends."""

import os
import re

from leveret.core.amqp_0_9.drafts.family import families
from leveret.core.broker.broker import Broker
from leveret.core.connection.connection import Connection
from leveret.core.limits import Limits
from leveret.core.wire.registry import FAMILIES, sniff
from leveret.ports.url import read_url
from leveret.tools.address import VERSIONS

HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
NUMBERS = re.compile(r"(?<![\d.])\d{1,2} \d{1,2} \d{1,2} \d{1,2}(?![\d.])")


def rows():
    """[(protocol, header, served)] of the table, the last without a header."""
    with open(os.path.join(HOME, "core", "SPEC.md"), encoding="utf-8") as file:
        text = file.read().split("| protocol | header | served |")[1].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.splitlines()[2:]]


def versions():
    """(protocol, octets of a header, the families of its listener, what is said of it being served)."""
    for protocol, header, served in rows()[:-1]:
        draft = re.search(r"\?version=([\w.]+)", header)
        for numbers in NUMBERS.findall(header):
            octets = b"AMQP" + bytes(int(number) for number in numbers.split())
            yield protocol, octets, families(draft.group(1)) if draft else FAMILIES, served


def test_each_header_is_served_as_its_row_says():
    for protocol, octets, asked, _ in versions():
        name = sniff(octets, asked)[1].name
        assert re.match(re.escape(name) + r"\b", protocol), (protocol, octets, name)


def test_each_version_that_is_served_has_its_row():
    served = {(family.name, family.header) for family in FAMILIES} | {(families(each)[0].name, None) for each in VERSIONS}
    named = {(sniff(octets, asked)[1].name, octets if asked is FAMILIES else None) for _, octets, asked, _ in versions()}
    assert named == served


def test_a_row_says_that_there_is_a_client():
    for protocol, _, _, served in versions():
        number = re.search(r"\d[\w.-]*", protocol).group(0)
        assert "client" in served and read_url("amqp://u:p@h/" + ("" if number == "0-9-1" else "?protocol=" + number)), protocol


def test_another_header_is_answered_as_the_last_row_says():
    broker = Broker(Limits(), b"versions")
    connection = Connection(broker, "stranger")
    view = connection.writable()
    view[:8] = b"AMQP\x09\x09\x09\x09"
    connection.received(8)
    said = "AMQP " + " ".join(str(octet) for octet in bytes(connection.pending())[4:])
    assert "`%s`" % said in rows()[-1][2] and connection.ending
