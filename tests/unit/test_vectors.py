"""The codec against recorded frames (vectors_0_9_1.py): every method decodes to the recorded fields and encodes to the recorded octets."""

import json
import struct

from vectors_0_9_1 import TEXTS

from leveret.core.amqp_0_9 import field_table, method, properties
from leveret.core.amqp_0_9.spec_0_9_1 import METHODS

NAMES = {"cluster_id": "reserved"}  # the last property: 0-9-1 calls it reserved, clients by its name of 0-8


def rows(kind):
    """The recorded rows of a frame type, one at a time (all at once would fill a small heap)."""
    for text in TEXTS:
        row = json.loads(text)
        if row[1] == kind:
            yield row


def plain(letter, value):
    """A recorded table value in the form that field_table gives."""
    if letter == "F":
        return plain_table(value)
    if letter == "A":
        return [plain(item[0], item[1]) for item in value]
    if letter == "x":
        return bytes.fromhex(value)
    if letter == "S" and isinstance(value, dict):
        return bytes.fromhex(value["hex"])
    if letter == "T":
        return ("T", value)
    if letter == "D":
        return value[1] / 10 ** value[0]
    return value


def plain_table(rows_of_table):
    return {row[0]: plain(row[1], row[2]) for row in rows_of_table}


def field_of(code, value):
    """A recorded method field in the form that method.decode gives."""
    if code == "F":
        return plain_table(value)
    if code == "T":
        return bytes.fromhex(value)
    return value


def octets_of(row):
    return bytes.fromhex(row[5])


def test_every_recorded_method_decodes_to_its_fields():
    count = 0
    for row in rows("method"):
        octets = octets_of(row)
        found = method.find(METHODS, struct.unpack_from(">I", octets, 7)[0])
        assert method.title(found) == row[2], row[2]
        wanted = [field_of(found[method.FIELDS][index], row[4][index][1]) for index in range(len(row[4]))]
        assert method.decode(found, octets, 11, len(octets) - 1) == wanted, row[2]
        count += 1
    assert count > 120


def test_every_recorded_method_without_a_table_encodes_to_its_octets():
    """In a table the letter of a number is the speaker's choice, so methods with tables are left to the next test."""
    count = 0
    for row in rows("method"):
        octets = octets_of(row)
        found = method.find(METHODS, struct.unpack_from(">I", octets, 7)[0])
        if "F" in found[method.FIELDS] and row[4][found[method.FIELDS].find("F")][1]:
            continue
        arguments = [field_of(found[method.FIELDS][index], row[4][index][1]) for index in range(len(row[4]))]
        again = method.encode(found, row[3], arguments)
        assert again == octets, row[2]
        count += 1
    assert count > 80


def test_every_recorded_table_survives_the_way_through_our_encoder():
    count = 0
    for row in rows("method"):
        for _name, value in row[4]:
            if isinstance(value, list) and value:
                table = plain_table(value)
                again = field_table.encode(table)
                assert field_table.decode(again, 0, len(again)) == (table, len(again)), row[2]
                count += 1
    assert count > 8


def test_every_recorded_content_header_decodes_to_its_properties():
    count = 0
    for row in rows("header"):
        octets = octets_of(row)
        assert struct.unpack_from(">HHQ", octets, 7) == (row[4][0][1], row[4][1][1], row[4][2][1])
        wanted = {NAMES.get(name, name): plain_table(value) if name == "headers" else value for name, value in row[4][3:]}
        properties.check(octets, 19, len(octets) - 1)
        assert properties.decode(octets, 19, len(octets) - 1) == wanted, row
        count += 1
    assert count > 8


def test_a_content_header_without_headers_encodes_to_its_octets():
    count = 0
    for row in rows("header"):
        octets = octets_of(row)
        given = properties.decode(octets, 19, len(octets) - 1)
        if "headers" not in given:
            assert properties.encode(given) == octets[19:-1], row
            count += 1
    assert count > 2
