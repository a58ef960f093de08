"""Windows of the serial link: nothing is overwritten before it is acknowledged, nothing that arrived is sent again, and numbers wrap."""

from leveret.core.serial_link.window import WINDOW_SIZES, FrameSize, ReceiveWindow, SendWindow, grain_size


def text(size, start=0):
    return bytes([(start + index * 7 + (index >> 8)) & 0xFF for index in range(size)])


def put(window, octets):
    window.put(memoryview(octets), 0, len(octets))


def take(window, size_max=1024):
    """(first grain, octets) of the next run, or None."""
    if not window.choose_run(size_max):
        return None
    octets = b""
    while len(octets) < window.run_size:
        start = window.run_start(len(octets))
        octets += bytes(window.ring[start : start + window.run_left(len(octets))])
    return window.run_first, octets


def receive(window, run):
    return window.put(run[0], memoryview(run[1]), 0, len(run[1]))


def drain(window):
    octets = b""
    size = window.piece_size()
    while size:
        octets += bytes(window.ring[window.piece_start() : window.piece_start() + size])
        window.release(size)
        size = window.piece_size()
    return octets


def report(receiver, sender):
    """What the receiver has, told to the sender."""
    bitmap = bytearray(16)
    end = receiver.write_bitmap(bitmap, 0)
    assert sender.is_known(receiver.expected)
    sender.acknowledge(receiver.expected)
    sender.mark(bitmap, 0, end)
    return sender.find_lost()


def test_a_window_has_at_most_128_grains_so_that_old_numbers_stay_old():
    for size in WINDOW_SIZES:
        window = SendWindow(size)
        assert window.count * window.grain == size and window.count <= 128 and window.grain == grain_size(size) >= 16


def test_runs_go_out_in_order_and_stay_until_they_are_acknowledged():
    window = SendWindow(256)
    put(window, text(100))
    assert window.outstanding() == 7 and window.room() == 9 * 16
    assert take(window, 64) == (0, text(100)[:64]) and take(window, 64) == (4, text(100)[64:]) and take(window) is None
    put(window, text(144, 9))
    assert window.room() == 0
    assert window.acknowledge(4) == 4 and window.room() == 64 and window.acknowledge(4) == 0
    assert take(window) == (7, text(144, 9))


def test_only_what_was_put_can_be_acknowledged():
    window = SendWindow(256)
    put(window, b"a")
    put(window, b"b")
    assert [number for number in range(256) if window.is_known(number)] == [0, 1, 2]


def test_only_what_is_missing_goes_out_again_and_only_when_something_later_has_arrived():
    sender, receiver = SendWindow(1024), ReceiveWindow(1024)
    put(sender, text(640))
    runs = [take(sender, 64) for _ in range(10)]
    for number in (0, 2, 3, 5, 9):
        receive(receiver, runs[number])
    assert drain(receiver) == text(640)[:64] and receiver.has_gap()
    assert report(receiver, sender) == 5, "frames 1, 4, 6, 7 and 8 were sent before one that arrived"
    again = [take(sender, 64) for _ in range(5)]
    assert again == [runs[1], runs[4], runs[6], runs[7], runs[8]] and take(sender) is None
    assert report(receiver, sender) == 0, "what is on its way again is not lost again"
    receive(receiver, again[1])
    assert report(receiver, sender) == 1
    for run in again[2:] + [take(sender, 64)]:
        receive(receiver, run)
    assert drain(receiver) == text(640)[64:] and not receiver.has_gap()
    report(receiver, sender)
    assert sender.outstanding() == 0 and sender.sent_grains == 0


def test_what_an_answered_question_does_not_show_is_lost():
    sender, receiver = SendWindow(256), ReceiveWindow(256)
    put(sender, text(64))
    run = take(sender, 64)
    sender.mark_question()
    assert report(receiver, sender) == 0
    sender.answered()
    assert report(receiver, sender) == 1
    assert take(sender, 32) == (0, run[1][:32]) and take(sender, 32) == (2, run[1][32:]), "cut as it is best now"


def test_frames_that_come_twice_or_overlap_are_taken_once():
    receiver = ReceiveWindow(256)
    assert receive(receiver, (2, text(48))) == 3 and receive(receiver, (2, text(48))) == 0
    assert receive(receiver, (3, text(48)[16:] + b"new")) == 1
    assert receive(receiver, (0, b"x" * 16 + b"y")) == 2
    assert drain(receiver) == b"x" * 16 + b"y" + text(48) + b"new"
    assert not receiver.is_new(0) and not receiver.is_new(255) and receiver.is_new(receiver.expected)


def test_what_lies_beyond_the_window_is_not_taken():
    receiver = ReceiveWindow(256)
    assert receive(receiver, (14, text(100))) == 2
    assert not receiver.is_new(16)


def test_numbers_wrap_for_every_window_size_with_every_frame_lost_once():
    for size in WINDOW_SIZES[:5]:
        sender, receiver = SendWindow(size), ReceiveWindow(size)
        sent, got, count, again = b"", b"", 0, 0
        while len(sent) < 9000:
            octets = text(min(sender.room(), 1 + count * 37 % 200), count)
            put(sender, octets)
            sent += octets
            run = take(sender, 64)
            while run is not None:
                count += 1
                if count % 2:
                    receive(receiver, run)
                run = take(sender, 64)
            got += drain(receiver)
            sender.mark_question()
            sender.answered()
            again += report(receiver, sender)
        while sender.outstanding():
            run = take(sender, 64)
            if run is not None:
                receive(receiver, run)
            got += drain(receiver)
            sender.mark_question()
            sender.answered()
            report(receiver, sender)
        assert got == sent and again > 10, size


def test_the_order_begins_anew_before_it_grows_large():
    sender, receiver = SendWindow(256), ReceiveWindow(256)
    sender._order = (1 << 28) - 3
    for round_number in range(6):
        put(sender, text(64, round_number))
        runs = [take(sender, 16) for _ in range(4)]
        receive(receiver, runs[3])
        assert report(receiver, sender) == 3 and sender._order < 1 << 28
        for _ in range(3):
            receive(receiver, take(sender, 16))
        assert drain(receiver) == text(64, round_number)
        report(receiver, sender)
    assert sender._order < (1 << 27) + 1000 and sender.outstanding() == 0


def test_runs_of_before_the_order_began_anew_are_older_than_all_that_go_out_later():
    sender = SendWindow(256)
    sender._order = (1 << 28) - 1
    sender.mark_question()
    assert sender._order == 1 << 27 and sender._question == sender._order - 1
    assert set(sender._orders) == {0} and sender._newest == 0


def settle(size_max, damaged_of_octets):
    """The frame size after a while on a line where one of so many octets is damaged (0: none)."""
    size = FrameSize(8)
    size.begin(32, size_max)
    octets = lost = 0
    for _ in range(2000):
        size.count(size.now, 0)
        octets += size.now
        if damaged_of_octets and octets // damaged_of_octets > lost:
            lost = octets // damaged_of_octets
            size.count(0, 1)
    return size.now


def test_frames_are_as_large_as_the_line_is_good():
    assert settle(512, 0) == 512
    assert settle(1024, 100000) >= 512
    assert 64 <= settle(512, 1000) <= 128, "sqrt(8 x 1000) = 89"
    assert settle(512, 50) == 32


def test_a_line_that_becomes_good_gets_large_frames_again():
    size = FrameSize(8)
    size.begin(32, 512)
    for _ in range(200):
        size.count(size.now, 1)
    assert size.now == 32
    for _ in range(8000):
        size.count(size.now, 0)
    assert size.now == 512
