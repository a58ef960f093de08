"""The commands of `leveret` with their options as data, read from argparse: completion and man pages are made of it.

Laws: nothing is listed by hand: what a command's `add_arguments` says is here. Reading imports the file of every command, and nothing that
a command imports only when it runs.
"""

import argparse

from . import cli

FILES = ("FILE", "PATH", "OUT", "CSV", "SOCKET", "DEVICE")
FOLDERS = ("DIR", "FOLDER")
NOTHING, FILE, FOLDER = "", "file", "folder"


class Option:
    """`flags`: as --sync, -s; none of an argument that stands by its place. `value`: its placeholder, "" for a switch. `choices`: words
    that it may be. `kind`: NOTHING, FILE or FOLDER, by the placeholder. `help`: one line. `repeats`: may be given again."""

    def __init__(self, action, prog):
        self.flags = tuple(action.option_strings)
        self.choices = tuple(str(each) for each in action.choices) if action.choices else ()
        takes = action.nargs != 0
        placeholder = action.metavar or ("{" + ",".join(self.choices) + "}" if self.choices else action.dest.upper())
        self.value = (placeholder if isinstance(placeholder, str) else " ".join(placeholder)) if takes else ""
        bare = self.value.split("[")[0].split(".")[0].rsplit("_")[-1].rsplit("-")[-1].strip("{} ")
        self.kind = FILE if bare in FILES else FOLDER if bare in FOLDERS else NOTHING
        self.help = expanded(action, prog)
        self.repeats = isinstance(action, argparse._AppendAction) or action.nargs in ("*", "+")
        self.needed = action.required or (not self.flags and action.nargs not in ("?", "*"))


class Command:
    """`path`: its words behind `leveret`; `help`: one line; `text`: what it says of itself; `options`, `arguments`: Options; `commands`:
    the Commands below it."""

    def __init__(self, parser, path, help):
        self.path = path
        self.help = help
        self.text = parser.description or help
        self.options: list = []
        self.arguments: list = []
        self.commands = []
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                helps = {each.dest: each.help or "" for each in action._choices_actions}
                self.commands = [Command(below, (*path, name), helps.get(name, "")) for name, below in action.choices.items()]
            elif action.help != argparse.SUPPRESS:
                (self.options if action.option_strings else self.arguments).append(Option(action, parser.prog))

    def all(self):
        """This one and all below it."""
        yield self
        for each in self.commands:
            yield from each.all()


def expanded(action, prog):
    """The help of an action in one line, with argparse's %(default)s and the like filled in."""
    given = {name: value for name, value in vars(action).items() if value is not argparse.SUPPRESS}
    if given.get("choices"):
        given["choices"] = ", ".join(map(str, given["choices"]))
    return " ".join(((action.help or "") % dict(given, prog=prog)).split())


def read():
    """The Command that is `leveret` itself."""
    top = Command(cli.make_parser(None), (), "")
    top.commands = []
    for name, text in cli.COMMANDS:
        parser = cli.make_parser(name)
        (subparsers,) = [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]
        top.commands.append(Command(subparsers.choices[name], (name,), text))
    return top
