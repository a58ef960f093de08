"""Every command of `leveret` with its arguments, their values and defaults: users' scripts hold them, so that none goes or changes unseen.

`python tests/tools/test_options_kept.py` writes the table anew, after a change that is meant (CHANGELOG.md tells users of it).
"""

import argparse
import os

from leveret.tools import cli

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "options_kept.txt")
SHORT = 60  # longer defaults are texts of this machine: paths


def of_argument(action):
    """An argument in one line."""
    name = ", ".join(action.option_strings) or action.dest
    takes = "" if action.nargs is None else f" takes {action.nargs}"
    default = action.default if isinstance(action.default, (int, float, str, bool, type(None))) else type(action.default).__name__
    kind = getattr(action.type, "__name__", "") if action.type else ""
    choices = f" one of {' '.join(map(str, action.choices))}" if action.choices else ""
    return f"{name}{' ' + kind if kind else ''}{takes}{choices}{' needed' if action.required else ''}, default {repr(default)[:SHORT]}"


def of_parser(parser, words):
    """The lines of a command and those below it."""
    lines = [" ".join(words)]
    below = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            lines.append("  a command follows" + (" (needed)" if action.required else ""))
            below += [of_parser(each, (*words, name)) for name, each in action.choices.items()]
        elif not isinstance(action, argparse._HelpAction):
            lines.append("  " + of_argument(action))
    lines += ["  either " + " or ".join(each.dest for each in group._group_actions) for group in parser._mutually_exclusive_groups]
    return lines + [line for each in below for line in each]


def table():
    """The lines of all commands."""
    lines = []
    for name, _ in cli.COMMANDS:
        commands = next(each for each in cli.make_parser(name)._actions if isinstance(each, argparse._SubParsersAction))
        lines += of_parser(commands.choices[name], ("leveret", name))
    return lines


def test_every_argument_of_every_command_is_as_the_table_has_it():
    with open(TABLE, encoding="utf-8") as file:
        assert table() == file.read().splitlines()


def test_each_command_has_the_words_that_its_table_says():
    """`leveret --help` lists each command once, and only the command that was chosen reads its own arguments."""
    names = [name for name, _ in cli.COMMANDS]
    assert len(set(names)) == len(names)
    for name in names:
        commands = next(each for each in cli.make_parser(name)._actions if isinstance(each, argparse._SubParsersAction))
        own = {each: len(parser._actions) for each, parser in commands.choices.items()}
        assert list(own) == names and all(count == 1 for each, count in own.items() if each != name)


if __name__ == "__main__":
    with open(TABLE, "w", encoding="utf-8") as file:
        file.write("\n".join(table()) + "\n")
