"""Class test of 0-8 and of the drafts, each operation of it, and what is none (AMQP 0-8 class 120; in the drafts: add, min, max)."""

from test_older import HEADERS, Old

from leveret.core.amqp_0_9 import older
from leveret.core.amqp_0_9.drafts import class_test
from leveret.core.errors import SYNTAX_ERROR, ProtocolError

ALL_ONES = 0xFFFFFFFFFFFFFFFF


class Answers:
    """A session of which class test needs the sizes, and whose answers are kept. It is its own channel and its own buffer."""

    number = 1
    size = frame_size_max = 65536

    def __init__(self):
        self.send = self
        self.said = None

    def reply(self, number, name, arguments):
        assert number == 1
        self.said = name, arguments


def answer(function, *arguments):
    """The arguments of the answer, or the condition of the error."""
    session = Answers()
    try:
        function(session, session, list(arguments))
    except ProtocolError as error:
        return error.condition
    name, told = session.said
    assert name.endswith("_ok") and function.__name__ + "_ok" == name
    return told[0] if len(told) == 1 else told


def test_integers_of_0_8():
    for numbers, operation, result in (
        ((1, 2, 3, 4), 1, 10),
        ((10, 2, 3, 4), 2, 1),
        ((1, 2, 3, 4), 2, ALL_ONES - 7),  # 1 - 9, as a number without a sign
        ((2, 3, 5, 7), 3, 210),
        ((255, 65535, 4294967295, ALL_ONES), 1, 255 + 65535 + 4294967295 - 1),  # beyond 64 bits
        ((200, 2, 5, 1), 4, 20),
        ((7, 2, 1, 1), 4, 3),
        ((7, 2, 0, 1), 4, SYNTAX_ERROR),
        ((7, 0, 1, 1), 4, SYNTAX_ERROR),
        ((0, 1, 1, 1), 4, 0),
        ((1, 2, 3, 4), 0, SYNTAX_ERROR),
        ((1, 2, 3, 4), 5, SYNTAX_ERROR),
    ):
        assert answer(older.test_integer, *numbers, operation) == result, (numbers, operation)


def test_texts_of_0_8():
    """Operation 2 compares: what is above, equal or below, as 1, 0 and -1."""
    for first, second, operation, result in (
        ("ab", b"cd", 1, b"abcd"),
        ("é", b"", 1, b"\xc3\xa9"),
        ("a", b"b", 2, b"-1"),
        ("b", b"a", 2, b"1"),
        ("b", b"b", 2, b"0"),
        ("a", b"b", 0, SYNTAX_ERROR),
        ("a", b"b", 3, SYNTAX_ERROR),
    ):
        assert answer(older.test_string, first, second, operation) == result, (first, second, operation)


def test_tables():
    given = {"a": 3, "b": -5, "c": "zzz", "d": "z", "e": True, "f": b"octets", "g": 4}
    for of_numbers, number in ((1, 2), (2, ALL_ONES - 4), (3, 4)):
        for of_texts, text in ((1, b"zzzz"), (2, b"z"), (3, b"zzz")):
            assert answer(older.test_table, given, of_numbers, of_texts) == (number, text)
    assert answer(older.test_table, {}, 1, 1) == (0, b"")
    for wrong in ((0, 1), (1, 0), (4, 1), (1, 4)):
        assert answer(older.test_table, given, *wrong) == SYNTAX_ERROR, wrong


def test_the_drafts_have_other_operations():
    for operation, result in ((1, 17), (2, 1), (3, 9), (0, SYNTAX_ERROR), (4, SYNTAX_ERROR)):
        assert answer(class_test.test_integer, 4, 1, 9, 3, operation) == result
    assert answer(class_test.test_integer, ALL_ONES, 1, 0, 0, 1) == 0, "64 bits"
    for operation, result in ((1, b"abcde"), (2, b"ab"), (3, b"cde"), (0, SYNTAX_ERROR), (4, SYNTAX_ERROR)):
        assert answer(class_test.test_string, "ab", b"cde", operation) == result


def test_an_operation_that_there_is_not_ends_the_connection_with_502():
    peer = Old(*HEADERS[0])
    peer.say("test_integer", 1, 1, 2, 3, 4, 9)
    assert peer.asked("connection_close")[0] == 502
