"""Regular expressions of permissions and policies (core/patterns/expression.py): RabbitMQ's meaning (re:run of octets, PCRE), the same on
every interpreter, and a bound on what each octet of a text costs. Random expressions are compared with google-re2 in tests/cpu."""

from same_random import Random

from leveret.core.patterns import expression_parser
from leveret.core.patterns.expression import Pattern
from leveret.core.patterns.expression_parser import WORK_MAX

SIZE = 8192

# expression, texts in which it is found, texts in which it is not (PCRE's answers, as of Erlang's re:run without options)
FOUND = (
    ("", ("", "a"), ()),
    (".*", ("", "a", "\n"), ()),
    ("^.*$", ("", "a", "a\n"), ("a\nb",)),
    ("^$", ("", "\n"), ("a",)),
    ("abc", ("abc", "xabcx"), ("ab", "abxc")),
    ("^abc", ("abc", "abcd"), ("xabc",)),
    ("abc$", ("abc", "xabc", "abc\n"), ("abcd", "abc\n\n")),
    ("^abc$", ("abc", "abc\n"), ("xabc", "abcx")),
    ("^amq\\.gen-.*$", ("amq.gen-1", "amq.gen-"), ("amqxgen-1", "amq.gen", "amq.gen-a\nb")),
    ("a.c", ("abc", "a.c"), ("ac", "a\nc")),
    ("^s\\.\\d+$", ("s.17",), ("s.", "s.x", "s.1x")),
    ("^(a|bc)+$", ("a", "bc", "abca"), ("", "b", "ab")),
    ("^a{2,3}$", ("aa", "aaa"), ("a", "aaaa")),
    ("^(?:ab?){2}$", ("aa", "aba", "abab"), ("a", "aaa")),
    ("^a{,2}$", ("a{,2}",), ("", "aa")),
    ("a{2", ("a{2",), ("aa",)),
    ("^[^a-c]$", ("d", "\n"), ("a", "", "dd")),
    ("^[]a]+$", ("]a",), ("b",)),
    ("^[^]a]$", ("b",), ("]", "a")),
    ("^[a-]$", ("a", "-"), ("b",)),
    ("^[\\w.-]+$", ("a.b-c_9",), ("a b",)),
    ("^[[:alpha:]]+$", ("aZ",), ("a1",)),
    ("^[[:^digit:]]$", ("a",), ("1",)),
    ("^\\s\\S$", (" a", "\x0ba"), ("aa", "  ")),
    ("\\bfoo\\b", ("foo", "a foo.b"), ("foot", "afoo", "foo_")),
    ("foo\\B", ("foot",), ("foo", "foo.")),
    ("^\\x41\\x{42}$", ("AB",), ("ab",)),
    ("^\\Aa\\z$", ("a",), ("a\n", "ba")),
    ("a\\Z", ("a", "a\n"), ("ab",)),
    ("(?i)^QUEUE-[a-c]$", ("queue-B", "QuEuE-c"), ("queue-d",)),
    ("^a(?i:b)c$", ("abc", "aBc"), ("Abc", "abC")),
    ("(?s)a.c", ("a\nc",), ("ac",)),
    ("(?m)^b$", ("a\nb\nc",), ("a b", "ab\n")),
    ("^(?<name>a)(?P<other>b)$", ("ab",), ("a",)),
    ("^(?!amq\\.).*", ("queue", "amq", ""), ("amq.gen",)),
    ("^(?!a|b)(?!c)..$", ("dd",), ("ad", "bd", "cd", "d")),
    ("^a+?b*?$", ("a", "aab"), ("", "b")),
    ("a|b|", ("", "c"), ()),
    ("^a$|^b", ("a", "bc"), ("ac",)),
    ("^.$", ("a",), ("\xe9", "ab")),  # octets: two of UTF-8
    ("^\xe9$", ("\xe9",), ("e",)),
    ("^(a?)*b$", ("b", "aab"), ("a",)),
    ("^(\\b|a)*$", ("", "aa"), ("ba",)),
    ("x{0}y", ("y", "xy"), ("x",)),
)

REFUSED = (
    ("(", "not closed"),
    (")", "not opened"),
    ("(?:a", "not closed"),
    ("[", "ends"),
    ("[a", "ends"),
    ("*", "nothing"),
    ("a**", "a repetition"),
    ("^*", "nothing"),
    ("a{2}{3}", "repetition"),
    ("{1}", "nothing"),
    ("a{3,2}", "{3,2}"),
    ("\\", "ends"),
    ("(?=a)", "look ahead"),
    ("a(?!b)", "look ahead"),
    ("(?<=a)", "look behind"),
    ("(?<!a)", "look behind"),
    ("(?>a)", "atomic"),
    ("(a)\\1", "\\1"),
    ("\\pL", "\\p"),
    ("\\Qa\\E", "\\Q"),
    ("a++", "possessive"),
    ("(?x)a", "(?x"),
    ("(?R)", "recursion"),
    ("(?P=n)", "group"),
    ("(*UTF8)a", "(*"),
    ("[[:nothing:]]", "class"),
    ("[[.a.]]", "class"),
    ("[b-a]", "range"),
    ("[\\d-z]", "range"),
    ("\\xg1", "\\x"),
    ("\\x{100}", "\\x"),
    ("^(?!a)b|c", "branches"),
    ("a{99999}", "large"),
    ("((a{30}){30}){30}", "large"),
    ("b" * 9000, "large"),
)


def found(expression, text):
    return Pattern(expression, SIZE).matches(text)


def test_an_expression_is_found_where_rabbitmq_finds_it():
    for expression, yes, no in FOUND:
        for text in yes:
            assert found(expression, text), (expression, text)
        for text in no:
            assert not found(expression, text), (expression, text)


def test_plain_text_is_compared_and_means_the_same_as_its_program():
    """Expressions that are compared as text, and the same ones in brackets, which are run."""
    for expression in ("abc", "^abc", "abc$", "^abc$", "^a\\.c.*$", "^ab.*", ".*", "^$", "^a\\.*"):
        for text in ("", "abc", "abcd", "xabc", "abc\n", "a.c\nd", "ab\nab", "a.cx", "a..", "axc"):
            plain = Pattern(expression, SIZE)
            run = Pattern("(?:%s)" % expression, SIZE)
            assert plain.matches(text) == run.matches(text), (expression, text)
    assert Pattern("^amq\\.gen.*", SIZE).programs == ()
    assert Pattern("^a\\.*", SIZE).programs != ()


def test_what_is_wrong_or_not_served_is_said_where_it_comes_in():
    for expression, word in REFUSED:
        try:
            Pattern(expression, SIZE)
        except ValueError as error:
            assert word in str(error) and "\n" not in str(error), (expression, str(error))
        else:
            raise AssertionError(expression)


def test_no_expression_costs_more_steps_an_octet_than_the_bound():
    """Steps: pairs that are looked at, once more for each assertion that may follow another one at the same place."""
    for expression in ("^(a+)+$", "(a|aa|aaa)*b", "(a|b)*a(a|b){60}", "(x+x+)+y", "((a*)*)*b", "(ab?){20}", "^(([a-z])+.)+[A-Z]([a-z])+$"):
        for program, _ in Pattern(expression, SIZE).programs:
            assert len(program[4]) <= WORK_MAX
            assert (expression_parser.count_asserted(program) + 1) * (len(program[4]) + 4) <= WORK_MAX
    try:
        Pattern("(\\b|\\B|a)" * 40, 1 << 20)
    except ValueError as error:
        assert "work" in str(error)
    else:
        raise AssertionError("forty borders in a row")


def test_an_expression_larger_than_a_broker_takes_is_refused():
    Pattern("(ab|cd)+", 1024)
    try:
        Pattern("(ab|cd){9}x{40}", 600)
    except ValueError as error:
        assert "600" in str(error) or "large" in str(error)
    else:
        raise AssertionError("too large")
    for text in ("(a)" * 201, "^(?!" + "(a)" * 201 + ")b"):  # before a step is made of it
        try:
            Pattern(text, 600)
        except ValueError as error:
            assert "longer than 600 octets" in str(error), str(error)
        else:
            raise AssertionError("too long")


# Expressions by chance against the meaning itself: which ends each part has in a text, from each begin.


def made_by_chance(chance, depth):
    """(text of an expression, its meaning: ends(text, begin) is a set) of literals, sets, sequences, branches and repetitions."""
    kind = chance.below(7) if depth else chance.below(2)
    if kind == 0:
        letter = chance.choice("ab")
        return letter, lambda text, at: {at + 1} if text[at : at + 1] == letter else set()
    if kind == 1:
        return "[^b]", lambda text, at: {at + 1} if at < len(text) and text[at] != "b" else set()
    if kind < 4:
        parts = [made_by_chance(chance, depth - 1) for _ in range(chance.below(3) + 1)]
        return "(?:%s)" % "".join([part[0] for part in parts]), lambda text, at: in_a_row([part[1] for part in parts], text, at)
    if kind == 4:
        parts = [made_by_chance(chance, depth - 1) for _ in range(2)]
        return "(?:%s|%s)" % (parts[0][0], parts[1][0]), lambda text, at: parts[0][1](text, at) | parts[1][1](text, at)
    inner, ends = made_by_chance(chance, depth - 1)
    sign, least, most = chance.choice(
        (("*", 0, None), ("+", 1, None), ("?", 0, 1), ("{2}", 2, 2), ("{1,3}", 1, 3), ("{2,}", 2, None), ("{0,2}", 0, 2), ("{3,4}", 3, 4))
    )
    return "(?:%s)%s" % (inner, sign), lambda text, at: repeated(ends, text, at, least, most)


def in_a_row(parts, text, at):
    places = {at}
    for ends in parts:
        places = {end for place in places for end in ends(text, place)}
    return places


def repeated(ends, text, at, least, most):
    """Ends of `least` to `most` (None: any number) times the same, one after the other."""
    places, reached = {at}, set()
    for count in range(len(text) + 5 if most is None else most + 1):
        if count >= least:
            reached |= places
        places = {end for place in places for end in ends(text, place)}
    return reached


def test_expressions_by_chance_mean_what_their_parts_mean():
    """All texts of a and b of up to four letters, and some longer: from the begin to the end, and anywhere."""
    texts = [""]
    for _ in range(4):
        texts += [text + letter for text in texts if len(text) == len(texts[-1]) for letter in "ab"]
    texts += ["aabab", "bbbaaa", "abababab"]
    chance = Random(5)
    for _ in range(120):
        expression, ends = made_by_chance(chance, 3)
        try:
            whole, anywhere = Pattern("^(?:%s)\\z" % expression, SIZE), Pattern("%s" % expression, SIZE)
        except ValueError:
            continue  # it asks for too much work
        for text in texts:
            assert whole.matches(text) == (len(text) in ends(text, 0)), (expression, text)
            assert anywhere.matches(text) == any(ends(text, at) for at in range(len(text) + 1)), (expression, text)


# Which octets the short sets and the POSIX classes have (PCRE in the C locale; \s has the vertical tab).
SETS = {
    "\\d": "0123456789",
    "\\w": "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_",
    "\\s": "\t\n\x0b\x0c\r ",
    "[[:digit:]]": "0123456789",
    "[[:upper:]]": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "[[:lower:]]": "abcdefghijklmnopqrstuvwxyz",
    "[[:xdigit:]]": "0123456789abcdefABCDEF",
    "[[:space:]]": "\t\n\x0b\x0c\r ",
    "[[:blank:]]": "\t ",
    "[a-cx]": "abcx",
    "(?i)[a-cx]": "abcxABCX",
    "\\t": "\t",
    "\\n": "\n",
    "\\r": "\r",
    "\\f": "\x0c",
    "\\e": "\x1b",
    "\\.": ".",
}


def test_sets_have_their_octets_and_no_others():
    for expression, octets in SETS.items():
        pattern = Pattern("^%s\\z" % expression if expression[:4] != "(?i)" else "(?i)^%s\\z" % expression[4:], SIZE)
        has = "".join([chr(octet) for octet in range(128) if pattern.matches(chr(octet))])
        assert sorted(has) == sorted(octets), (expression, has)
    for letter in "dws":
        inside, outside = Pattern("^\\%s\\z" % letter, SIZE), Pattern("^\\%s\\z" % letter.upper(), SIZE)
        assert all(inside.matches(chr(octet)) != outside.matches(chr(octet)) for octet in range(128)), letter
