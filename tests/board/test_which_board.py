"""boards/README.md, "Which board shall I buy": its figures are those of the profiles."""

import os

from leveret.tools import boards, wear

HEAD = "| board | heap | free | connections | queues | messages at once | one message up to | keeps over a power cut | bridge |"
STORE = {"sync": "batch", "batch_ms": 45000, "size": 524288}  # as in the example of the page


def row(board):
    """A board's line of the table."""
    limits, parts = board.limits, board.carries["parts"]
    keeps = "%.0f years" % wear.years(STORE, board.flash_size) if "log" in parts else "no"
    figures = (
        "%d KiB" % (board.heap_size >> 10),
        "%d KiB" % (board.free() >> 10),
        limits.connection_count_max,
        limits.queue_count_max,
        "%s KiB" % (limits.arena_size >> 10),
        "%d KiB" % (limits.content_size_max >> 10),
        keeps,
        "yes" if "bridge" in parts else "no",
    )
    return "| " + " | ".join([board.name, *map(str, figures)]) + " |"


def test_the_page_has_the_figures_of_each_board():
    with open(os.path.join(boards.BOARDS, "README.md"), encoding="utf-8") as file:
        page = file.read()
    assert HEAD in page
    for name in boards.names():
        board = boards.load(name)
        if board.interpreter == "micropython" and name != "unix":
            assert row(board) in page, row(board)


def test_the_page_has_the_pins_and_the_form_of_code_of_each_board():
    forms = {"mpy": "files", "frozen": "frozen", "romfs": "ROMFS"}
    with open(os.path.join(boards.BOARDS, "README.md"), encoding="utf-8") as file:
        rows = {line.split(" | ")[0][2:]: line for line in file if line.count(" | ") == 4 and line.startswith("| ")}
    for name in boards.names():
        board = boards.load(name)
        if board.uart and board.interpreter == "micropython":
            line = "%s, %s, %s" % (board.uart["id"], board.uart["tx"], board.uart["rx"])
            assert " | %s | %s | " % (forms[board.code], line) in rows[name], (name, line)
