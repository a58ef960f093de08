"""The man pages, made of what the commands say of themselves (command_tree.py): leveret(1), and leveret-COMMAND(1) for each command.

    pages() -> {"leveret-serve.1": its text in roff, man(7)}

What `--help` shows is here, and what a command's file says at its begin in paragraphs; nothing is written twice.
"""

import importlib
import re

from leveret.core.version import VERSION

from . import cli, command_tree


def escaped(text):
    """A text as roff has it: backslashes and hyphens as themselves, no line taken for a request."""
    return re.sub(r"^([.'])", r"\\&\1", text.replace("\\", "\\e").replace("-", "\\-"), flags=re.MULTILINE)


def option_lines(option):
    """An option, or an argument that stands by its place, as a tagged paragraph."""
    flags = ", ".join(f"\\fB{escaped(flag)}\\fR" for flag in option.flags)
    value = f"\\fI{escaped(option.value)}\\fR" if option.value else ""
    return [".TP", " ".join(filter(None, (flags, value))), escaped(option.help or "\\&")]


def command_lines(command):
    """The options of a command and of those below it."""
    lines = []
    for each in command.all():
        if each is not command:
            lines += [".SS " + escaped("leveret " + " ".join(each.path)), escaped(each.text)]
        elif each.options or each.arguments:
            lines.append(".SH OPTIONS")
        for option in (*each.arguments, *each.options):
            lines += option_lines(option)
    return lines


def described_by(name):
    """The docstring of a command's file, in paragraphs; examples and tables as they stand."""
    module = importlib.import_module("leveret.tools." + cli.TOGETHER.get(name, name))
    lines = [".SH DESCRIPTION"]
    for paragraph in (module.__doc__ or "").strip().split("\n\n"):
        if paragraph.startswith("    "):
            lines += [".PP", ".nf", ".RS 4", *escaped(re.sub("^    ", "", paragraph, flags=re.MULTILINE)).split("\n"), ".RE", ".fi"]
        else:
            lines += [".PP", *escaped(paragraph).split("\n")]
    return lines


def head(name, text):
    """The begin of a page."""
    return [f'.TH "{name.upper()}" 1 "" "leveret {VERSION}" "Leveret"', ".SH NAME", f"{escaped(name)} \\- {escaped(text)}"]


def front(top):
    """The lines of leveret(1)."""
    lines = head("leveret", "an AMQP broker for where the sensors are")
    lines += [".SH SYNOPSIS", ".B leveret", ".I COMMAND", ".RI [ argument ...]", ".SH COMMANDS"]
    for command in top.commands:
        lines += [".TP", "\\fB" + escaped("leveret-" + command.path[0]) + "\\fR(1)", escaped(command.help)]
    lines += command_lines(top)
    lines += [".SH EXIT STATUS", "0: done; 1: not done, and a sentence says why; 2: a mistake in the command line or in a file."]
    return lines + [".SH FILES", ".TP", ".I /etc/leveret/leveret.toml", "The configuration of the service, with every setting explained."]


def page(command):
    """The lines of a command's own page."""
    name = "leveret-" + command.path[0]
    places = "".join(f" \\fI{escaped(each.value)}\\fR" for each in command.arguments)
    synopsis = [".SH SYNOPSIS", ".B " + escaped(name.replace("-", " ", 1)), ".RI [ options ]" + (f' "{places}"' if places else "")]
    described = [*described_by(command.path[0]), *command_lines(command)]
    return [*head(name, command.help), *synopsis, *described, ".SH SEE ALSO", ".BR leveret (1)"]


def pages():
    """{file name: text}."""
    top = command_tree.read()
    made = {"leveret.1": front(top)}
    made.update((f"leveret-{command.path[0]}.1", page(command)) for command in top.commands)
    return {name: "\n".join(lines) + "\n" for name, lines in made.items()}
