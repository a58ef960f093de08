"""The speed of a serial link: both ends change to one that both have, and give it up where nothing is heard."""

from link_ends import Maker, drain, give, text, tick

from leveret.core.serial_link.link import Link


class FastLine:
    """Two ends whose devices have speeds: what is sent at another speed than the receiver has arrives as garbage."""

    def __init__(self, works_up_to, *speeds):
        self.makers = Maker([text(2000)]), Maker([text(2000, 5)])
        self.links = [
            Link(self.makers[side], 5 + side, active=side == 0, retransmit_ms=200, keepalive_ms=1000, speed=speeds[side]) for side in (0, 1)
        ]
        self.works_up_to = works_up_to
        self.now = 0

    def run(self, ms):
        for _ in range(ms // 20):
            self.now += 20
            tick(self.now, *self.links)
            for side in (0, 1):
                self.carry(self.links[side], self.links[1 - side])

    def carry(self, source, target):
        octets = drain(source)
        good = source.speed_set == target.speed_set <= self.works_up_to
        give(target, octets if good else bytes([octet ^ 0x55 for octet in octets]))
        source.speed_set = source.speed  # all is on the line

    def arrived(self):
        return bytes(self.makers[0].made[0].incoming) == text(2000, 5) and bytes(self.makers[1].made[0].incoming) == text(2000)


def test_both_ends_change_to_the_speed_that_both_can_do():
    line = FastLine(2000000, 921600, 460800)
    line.run(1000)
    assert [link.speed for link in line.links] == [460800, 460800] and line.arrived()
    line.run(10000)
    assert [link.speed for link in line.links] == [460800, 460800], "a quiet session keeps it"
    assert [link.session_count for link in line.links] == [1, 1]
    line = FastLine(2000000, 921600, 0)
    line.run(1000)
    assert [link.speed for link in line.links] == [0, 0] and line.arrived()


def test_a_speed_at_which_nothing_is_heard_is_given_up_and_the_session_goes_on():
    line = FastLine(115200, 921600, 921600)
    line.run(10000)
    assert [link.speed for link in line.links] == [0, 0] and line.arrived()
    assert [link.session_count for link in line.links] == [1, 1]
    line.run(20000)
    assert [link.speed for link in line.links] == [0, 0], "it is not tried for ever"


def test_an_end_that_begins_anew_at_the_first_speed_is_found_again():
    for side in (0, 1):
        line = FastLine(2000000, 921600, 921600)
        line.run(1000)
        assert line.links[1 - side].speed == 921600
        line.makers[side].outgoing = [b"new"]
        line.links[side] = Link(line.makers[side], 99, active=side == 0, retransmit_ms=200, keepalive_ms=1000, speed=921600)
        line.run(6000)
        assert [link.speed for link in line.links] == [921600, 921600], side
        assert bytes(line.makers[1 - side].made[-1].incoming) == b"new" and line.makers[1 - side].made[0].gone_count == 1


def test_the_cable_is_pulled_at_a_high_speed():
    line = FastLine(2000000, 921600, 921600)
    line.run(1000)
    line.links[0].unplugged()
    line.makers[0].made[0].outgoing = b"more"
    line.now += 3000
    line.links[0].plugged()
    line.run(10000)
    assert [link.speed for link in line.links] == [921600, 921600] and [link.session_count for link in line.links] == [1, 1]
    assert bytes(line.makers[1].made[0].incoming)[2000:] == b"more"
