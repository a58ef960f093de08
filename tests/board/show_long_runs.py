"""Writes the table of boards/README.md, "Boards that stay up": `python tests/board/show_long_runs.py FILE`, of the lines that
`long_run.py --json FILE` has added. Of a profile the run with the most messages counts."""

import json
import os
import sys

from leveret.tools import boards, flash_files, flash_images

HERE = os.path.dirname(os.path.abspath(__file__))
PAGE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "boards", "README.md")
BEGIN, END = "<!-- long runs -->\n", "<!-- end of long runs -->\n"
HEAD = (
    "| profile | code | hot path | heap | messages | free, first | free, last | least free | least hole | messages/s | us a message "
    "| readings | connections | code, heap | code, flash |"
)


def row(run):
    """A run's line."""
    figures = (
        run["profile"],
        {"mpy": "files", "romfs": "ROMFS"}.get(run["code"], run["code"]),
        "machine code" if run["machine_code"] else "bytecode",
        *["{:,}".format(run[name]) for name in ("heap", "messages", "free_start", "free_end", "free_least", "hole_least")],
        run["messages_s"],
        round(run["cpu_us"]),
        "{:,}".format(run["readings"]),
        run["connections_opened"],
        "{:,}".format(boards.load(run["profile"]).code_heap),
        "{:,}".format(run.get("frozen") or in_flash(boards.load(run["profile"]))),
    )
    return "| " + " | ".join(map(str, figures)) + " |\n"


def in_flash(board):
    """Octets of a board's code that is not frozen: its files, or its ROMFS image."""
    native = board.architecture in flash_files.MACHINE_CODE
    if board.code == "romfs":
        return len(flash_images.image(board, native))
    return sum(len(file.octets) for file in flash_files.compiled(board, native))


def main(path):
    """Write the table."""
    best: dict = {}
    with open(path, encoding="utf-8") as file:
        for line in file:
            run = json.loads(line)
            if run["profile"] not in best or best[run["profile"]]["messages"] < run["messages"]:
                best[run["profile"]] = run
    table = HEAD + "\n" + "|" + "---|" * 3 + "---:|" * 12 + "\n" + "".join(row(best[name]) for name in sorted(best))
    with open(PAGE, encoding="utf-8") as file:
        before, rest = file.read().split(BEGIN)
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(before + BEGIN + table + END + rest.split(END)[1])


if __name__ == "__main__":
    main(sys.argv[1])
