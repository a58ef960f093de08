"""The sending window of the serial link: nothing is overwritten before it is acknowledged, also where numbers wrap."""

from leveret.core.link_window import SendWindow


def put(window, octets):
    window.put(memoryview(octets), len(octets))


def take(window):
    octets = bytes(window.payload()[:window.payload_size()])
    window.step()
    return octets


def test_frames_go_out_in_order_and_stay_until_they_are_acknowledged():
    window = SendWindow(4, 16)
    for octets in (b"a", b"bb", b"ccc", b"dddd"):
        assert window.has_room()
        put(window, octets)
    assert not window.has_room() and window.outstanding() == 4
    assert [take(window) for _ in range(4)] == [b"a", b"bb", b"ccc", b"dddd"]
    assert window.go_back() == 4
    assert [take(window) for _ in range(2)] == [b"a", b"bb"]
    assert window.release(2) == 2 and window.outstanding() == 2 and window.has_room()
    assert take(window) == b"ccc"


def test_an_acknowledgement_past_the_cursor_moves_it():
    window = SendWindow(4, 16)
    for octets in (b"a", b"b", b"c"):
        put(window, octets)
        take(window)
    window.go_back()
    assert window.release(2) == 2
    assert take(window) == b"c" and window.cursor == window.next


def test_only_what_was_sent_can_be_acknowledged():
    window = SendWindow(4, 16)
    put(window, b"a")
    put(window, b"b")
    assert [number for number in range(256) if window.is_known(number)] == [0, 1, 2]


def test_numbers_wrap_for_every_window_size():
    for count in (1, 2, 4, 8, 16, 32, 64):
        window = SendWindow(count, 16)
        sent = 0
        for acknowledged in range(600):
            while window.has_room():
                put(window, b"%d" % sent)
                sent += 1
            assert take(window) == b"%d" % acknowledged, (count, acknowledged)
            assert window.release((acknowledged + 1) & 0xFF) == 1
