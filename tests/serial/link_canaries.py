"""Deliberate faults of a link: the simulation has to catch each of them, or it proves nothing. Each takes a Link that was just made."""


def checks_nothing(link):
    """Every piece between two flags is taken for a frame."""
    link._reader._check_holds = lambda size, check_size: True


def sends_nothing_again(link):
    """What is lost stays lost."""
    link._flow._send.find_lost = lambda: 0


def believes_that_everything_has_come(link):
    """A report of what is here is read as if nothing were missing behind the first gap."""
    window = link._flow._send
    mark = window.mark
    window.mark = lambda bitmap, start, end: mark(bytes([255]) * (end - start), 0, end - start)


def forgets_what_was_on_its_way(link):
    """After the cable was out, what was sent before counts as arrived."""
    unplugged = link.unplugged

    def unplugged_and_forgotten():
        unplugged()
        window = link._flow._send
        while window.base != window._cursor:
            window._states[window.base % window.count] = 0
            window.base = (window.base + 1) & 0xFF
        window.sent_grains = 0

    link.unplugged = unplugged_and_forgotten


def gives_credit_without_end(link):
    """Streams send as if there were always room."""
    streams = link.streams
    say = streams._say

    def say_all(number):
        if streams._inners[number] is not None:
            streams._credits[number] = 20000
        say(number)

    streams._say = say_all


def mixes_streams(link):
    """Data of the second stream goes to the first."""
    process = link.streams._process_octets
    link.streams._process_octets = lambda number, at, size: process(0 if link.streams._inners[0] is not None else number, at, size)


def speaks_out_of_turn(link):
    """A station of a shared line speaks whenever it has something to say."""
    compose = link._compose

    def compose_at_once():
        link.has_turn = link.has_turn or (link.turns and not link._active and link.is_open)
        compose()

    link._compose = compose_at_once


def stays_at_a_speed_that_does_not_work(link):
    """Nobody goes back to the first speed."""
    link._fall_back = lambda: None


CANARIES = (  # and the kind of world that catches it
    (checks_nothing, "noise"),
    (sends_nothing_again, "noise"),
    (believes_that_everything_has_come, "noise"),
    (forgets_what_was_on_its_way, "cables"),
    (gives_credit_without_end, "noise"),
    (mixes_streams, "noise"),
    (speaks_out_of_turn, "bus"),
    (stays_at_a_speed_that_does_not_work, "speed"),
)
SEEDS_MAX = 12
