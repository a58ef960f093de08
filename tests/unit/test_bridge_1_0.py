"""What a bridge sends to an upstream of AMQP 1.0: sections out of properties of class basic, with its marks (part 3, section 3.2)."""

from leveret.core.amqp_0_9 import properties
from leveret.core.amqp_0_9.bridge_marks import Marks
from leveret.core.amqp_1_0 import upstream
from leveret.core.amqp_1_0.client.message import Message
from leveret.core.message.formats import BASIC


def sent(given, key=b"site.1", to_key=False, marks=None):
    """The Message that upstream reads."""
    octets = properties.encode(given)
    if marks is not None:
        octets = marks.put(octets, 12, b"e", key, 1700000000)
    message = Message(None, 0, b"", 0, True)
    message.octets = upstream.head(BASIC, octets, key, to_key)
    return message


def test_marks_are_application_properties():
    message = sent({"headers": {"unit": "C"}}, marks=Marks("gw7"))
    assert message.application_properties == {
        "unit": "C",
        "x-gateway": "gw7",
        "x-sequence": 12,
        "x-arrived": ("timestamp", 1700000000000),
        "x-hops": ("int", 1),
    }
    assert message.properties == {"subject": "site.1"} and message.header == {} and message.annotations == {}


def test_each_property_of_class_basic_has_its_place():
    given = {
        "delivery_mode": 2,
        "priority": 7,
        "expiration": "1500",
        "content_type": "text/plain",
        "content_encoding": "gzip",
        "message_id": "m1",
        "correlation_id": "c1",
        "reply_to": "answers",
        "timestamp": 1700000000,
        "type": "reading",
        "user_id": "me",
        "app_id": "app",
    }
    message = sent(given)
    assert message.header == {"durable": True, "priority": 7, "ttl": 1500}
    assert message.properties == {
        "subject": "site.1",
        "content-type": "text/plain",
        "content-encoding": "gzip",
        "message-id": "m1",
        "correlation-id": "c1",
        "reply-to": "answers",
        "creation-time": 1700000000000,
        "user-id": b"me",
        "group-id": "app",
    }
    assert message.annotations == {"x-opt-type": "reading"}


def test_without_an_address_of_the_link_the_routing_key_is_where_it_goes():
    assert sent({}, b"readings", True).properties == {"subject": "readings", "to": "readings"}


def test_lists_and_tables_are_annotations_which_may_have_them():
    message = sent({"headers": {"x-death": [{"queue": "q", "count": 1}], "flag": True, "nothing": None, "half": 0.5}})
    assert message.application_properties == {"flag": True, "nothing": None, "half": 0.5}
    ((name, value),) = message.annotations.items()
    assert name == "x-opt-x-death" and value == [{("symbol", "queue"): "q", ("symbol", "count"): ("int", 1)}]


def test_a_key_that_is_no_text_goes_to_the_refused_queue():
    try:
        sent({}, b"\xff")
    except ValueError as error:
        assert str(error) == "a routing key that is not UTF-8 cannot be a subject"
    else:
        raise AssertionError("it was taken")
