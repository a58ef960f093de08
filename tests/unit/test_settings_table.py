"""The one checker of settings (ports/settings.py): what it takes, what it refuses, and in whose words."""

from leveret.ports.settings import Table, as_whole, one_of, whole, words_of

TABLE = Table(
    (
        ("count", whole(1, 9), 3),
        ("way", one_of("up", "down"), "up"),
        ("octets", (as_whole, "{least} to {most}", 0, 5, "{name}: {words}"), None),
        (
            "name",
            (
                lambda value, least, most: value if isinstance(value, str) and len(value) <= most else None,
                "a text",
                0,
                4,
                "{name} has {octets} octets of {most}",
            ),
            None,
        ),
    ),
    "{path}: no {name!r}{hint} of {names}",
    "{path}: {name} is {value!r}, not {words}",
    (
        (("octets", "name"), lambda values: values["way"] == "up", "{path}: {name} is for up"),
        ((), lambda values: values["count"] != 7, "{path}: count is 7"),
    ),
    hint=lambda name, names: " (%s?)" % names[0],
)


def refusal(given, look=None):
    try:
        (look or TABLE.full)(given, path="f")
    except ValueError as error:
        return str(error)
    return ""


def test_defaults_fill_what_is_left_out_and_what_is_given_stays_as_it_is():
    given = {"count": 9}
    assert TABLE.full(given, path="f") == {"count": 9, "way": "up", "octets": None, "name": None} and given == {"count": 9}
    assert TABLE.check({"octets": 0}, path="f") == {"octets": 0} and TABLE.check({}, path="f") == {}


def test_each_mistake_is_one_sentence_in_the_words_of_the_table():
    for given, sentence in (
        ({"x": 1}, "f: no 'x' (count?) of count, way, octets, name"),
        ({"count": 0}, "f: count is 0, not a whole number from 1 to 9"),
        ({"count": 10}, "f: count is 10, not a whole number from 1 to 9"),
        ({"count": True}, "f: count is True, not a whole number from 1 to 9"),
        ({"count": "{x}"}, "f: count is '{x}', not a whole number from 1 to 9"),
        ({"count": 2.0}, "f: count is 2.0, not a whole number from 1 to 9"),
        ({"way": "left"}, "way is up or down, not 'left'"),
        ({"way": ["up"]}, "way is up or down, not ['up']"),
        ({"octets": 6}, "octets: 0 to 5"),
        ({"name": "\u00e9" * 5}, "name has 10 octets of 4"),
        ({"name": 5}, "f: name is 5, not a text"),
    ):
        assert refusal(given) == sentence == refusal(given, TABLE.check), (given, refusal(given))


def test_relations_are_looked_at_over_all_values_and_name_what_was_given():
    assert refusal({"way": "down"}) == "" and refusal({"way": "down", "name": "a"}) == "f: name is for up"
    assert refusal({"octets": 1, "way": "down"}) == "f: octets is for up" and refusal({"count": 7}) == "f: count is 7"
    assert refusal({"count": 7}, TABLE.check) == "", "check looks at each by itself"


def test_the_words_of_a_kind_have_its_range():
    assert words_of(whole(1, 9)) == "a whole number from 1 to 9" and words_of(one_of("a", "b")) == "a or b"
