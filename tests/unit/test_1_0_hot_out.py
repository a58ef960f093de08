"""What a session writes all the time has the octets of the table (core/amqp_1_0/hot_out.py, sections 2.7.4 and 2.7.6)."""

from leveret.core.amqp_1_0 import composites, frame, hot_out

NUMBERS = (0, 1, 255, 256, 0x7FFFFFFF, 0xFFFFFFFF)


def framed(name, given):
    return frame.write(frame.AMQP, 7, composites.write(name, given, True))


def test_dispositions_have_the_octets_of_the_table():
    states = (
        None,
        ("accepted", {}),
        ("released", {}),
        ("modified", {"delivery-failed": True}),
        ("rejected", {"error": {"condition": "amqp:not-found", "description": "x" * 200}}),
    )
    for role in (True, False):
        for settled in (True, False):
            for first in NUMBERS:
                for last in NUMBERS:
                    for state in states:
                        given = {"role": role, "first": first, "settled": settled, "state": state}
                        if last != first:
                            given["last"] = last
                        assert hot_out.disposition(7, role, first, last, settled, state) == framed("disposition", given)


def test_flows_have_the_octets_of_the_table():
    session = {"next-incoming-id": None, "incoming-window": 2048, "next-outgoing-id": 3, "outgoing-window": 0x7FFFFFFF}
    for number in NUMBERS:
        given = dict(session)
        given["next-incoming-id"] = number
        assert hot_out.flow(7, given) == framed("flow", given)
        given.update({"handle": number, "delivery-count": number, "link-credit": number})
        assert hot_out.flow(7, given) == framed("flow", given)
        for drain in (True, False):
            given["drain"] = drain
            assert hot_out.flow(7, given) == framed("flow", given)
            given["available"] = number
            assert hot_out.flow(7, given) == framed("flow", given)
            del given["available"]
    assert hot_out.flow(7, session) == framed("flow", session)
