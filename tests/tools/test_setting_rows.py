"""The rows of a Table out of a text (ports/setting_rows.py): a line each, kinds by their words."""

import pytest

from leveret.ports.setting_rows import octets_of, rows
from leveret.ports.settings import Table, whole

KINDS = {"whole": whole, "ten": whole(10, 10)}


def test_each_line_is_a_row_and_an_indented_one_goes_on_with_its_meaning():
    text = """
size | whole 4K 1M | 8192 | octets | of a file,
 or of | two
ten | ten | | | ten
"""
    assert rows(text, KINDS) == (
        ("size", whole(4096, 1 << 20), 8192, "octets", "of a file, or of | two"),
        ("ten", whole(10, 10), None, "", "ten"),
    )
    assert Table(rows(text, KINDS), "", "{name} must be {words}").full({"size": 4096}) == {"size": 4096, "ten": None}


def test_defaults_are_json():
    defaults = ("[]", "{}", '"a"', "0.5", "true", "0", "")
    found = rows("\n".join(f"a | ten | {each} | | m" for each in defaults), KINDS)
    assert [row[2] for row in found] == [[], {}, "a", 0.5, True, 0, None]


@pytest.mark.parametrize("line", ["a | ten | | ", "a | twelve | | | m", "a | ten | x | | m"])
def test_a_line_that_is_no_row_stops_the_program(line):
    with pytest.raises((ValueError, KeyError)):
        rows(line, KINDS)


def test_octets_have_units_in_either_case():
    assert [octets_of(text) for text in ("0", "12", "4K", "4k", "2M", "1G", "1T")] == [0, 12, 4096, 4096, 2 << 20, 1 << 30, 1 << 40]
    assert [octets_of(text) for text in ("", "K", "-1", "1.5M", "1X", "²", "9" * 20)] == [None] * 7
