"""ports/joint.py: what comes in at one side goes out at the other, the slower one slows the faster, and the end comes behind the octets."""

from leveret.ports.joint import Joint


def put(side, octets):
    """Octets that the side's stream has read: how many fitted."""
    view = side.writable()
    count = min(len(view), len(octets))
    if count:
        view[:count] = octets[:count]
        side.received(count)
    return count


def get(side, most=99):
    octets = bytes(side.pending()[:most])
    side.sent(len(octets))
    return octets


def test_octets_go_both_ways_and_a_full_buffer_takes_no_more():
    joint = Joint(4)
    assert put(joint.near, b"abcdef") == 4 and put(joint.near, b"x") == 0
    assert put(joint.far, b"12") == 2 and get(joint.near) == b"12" and get(joint.near) == b""
    assert get(joint.far, 3) == b"abc" and put(joint.near, b"efghi") == 3 and get(joint.far) == b"defg"
    assert not joint.near.closed and not joint.far.closed


def test_the_end_of_one_side_comes_behind_what_it_said():
    joint = Joint(4)
    put(joint.near, b"abc")
    joint.near.received(0)
    assert joint.near.closed and len(joint.near.writable()) == 0 and not joint.far.closed
    assert get(joint.far, 2) == b"ab" and not joint.far.closed
    assert get(joint.far) == b"c" and joint.far.closed


def test_what_is_said_to_one_who_has_gone_is_nobodys():
    joint = Joint(4)
    joint.near.received(0)
    for _ in range(3):
        assert put(joint.far, b"abcd") == 4
    assert not put(joint.near, b"x")
