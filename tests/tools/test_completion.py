"""`leveret completion`: the three shells themselves complete what the parser has."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time

import pytest

from leveret.tools import cli, command_tree, completion

SECONDS = 60
SCRIPT = [sys.executable, "-m", "leveret.tools.cli", "completion"]
STARTS = {
    "bash": ["bash", "--norc", "--noprofile", "-i"],
    "zsh": ["zsh", "-f", "-i"],
}
LOADS = {
    "bash": "bind 'set bell-style none'; bind 'set page-completions off'; source {path}\n",
    "zsh": "autoload -Uz compinit; compinit -u -D; unsetopt beep; source {path}\n",
}


def need(shell):
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed: apt install {shell}")


@pytest.fixture(scope="module")
def scripts(tmp_path_factory):
    """{shell: path of its script}, as the command prints it."""
    folder = tmp_path_factory.mktemp("completion")
    for shell in completion.SHELLS:
        (folder / shell).write_bytes(subprocess.run([*SCRIPT, shell], check=True, capture_output=True).stdout)
    return {shell: str(folder / shell) for shell in completion.SHELLS}


class Terminal:
    """An interactive shell in which `leveret` is a function that shows its arguments."""

    def __init__(self, shell, script, folder):
        process, self.end = pty.fork()
        if process == 0:
            os.chdir(folder)
            os.environ.update(PS1="> ", TERM="dumb", HOME=str(folder), HISTFILE="/dev/null")
            os.execvp(STARTS[shell][0], STARTS[shell])
        self.process = process
        self.seen = ""
        self.type(LOADS[shell].format(path=script))
        self.type('leveret() { echo "got<$*>"; }; echo be""gin\n')
        self.until("begin")

    def type(self, text):
        os.write(self.end, text.encode())

    def until(self, pattern):
        """The match of a pattern in what comes."""
        limit = time.monotonic() + SECONDS
        while time.monotonic() < limit:
            found = re.search(pattern, self.seen)
            if found:
                self.seen = self.seen[found.end() :]
                return found
            if select.select([self.end], [], [], 0.2)[0]:
                self.seen += os.read(self.end, 65536).decode(errors="replace").replace("\r", "")
        raise AssertionError(f"{pattern!r} is not in {self.seen!r}")

    def completed(self, typed):
        """What a line is when the tabulator key has been pressed behind it, as the command gets it."""
        self.type(typed + "\t")
        time.sleep(0.3)  # a shell that still reads ahead would take the end of the line for the line
        self.type("\n")
        return self.until("got<(.*?)>")[1].rstrip()

    def close(self):
        os.close(self.end)
        os.waitpid(self.process, 0)


LINES = [
    ("se", "serve"),
    ("serve --check-", "serve --check-config"),
    ("serve --sync ba", "serve --sync batch"),
    ("serve --config gate", "serve --config gateway.toml"),
    ("serve --data fold", "serve --data folder"),
    ("serve --config gateway.toml --mem", "serve --config gateway.toml --memory"),
    ("list que", "list queues"),
    ("definitions exp", "definitions export"),
    ("definitions export gate", "definitions export gateway.toml"),
    ("log comp", "log compact"),
    ("completion z", "completion zsh"),
    ("serve --config log comp", "serve --config log comp"),  # `log` is a file's name here: nothing of the command log
]


@pytest.mark.parametrize("shell", tuple(STARTS))
def test_a_shell_completes_commands_options_words_and_files(shell, scripts, tmp_path):
    need(shell)
    (tmp_path / "gateway.toml").touch()
    (tmp_path / "folder").mkdir()
    terminal = Terminal(shell, scripts[shell], tmp_path)
    for typed, wanted in LINES:
        told = terminal.completed("leveret " + typed).rstrip("/")
        # --memory is the beginning of --memory-max: a shell may stop there.
        assert told == wanted, (typed, told)
    terminal.close()


def in_fish(script, folder, line):
    """What fish offers behind a line."""
    command = f"source {script}; complete -C '{line}'"
    done = subprocess.run(["fish", "--no-config", "-c", command], cwd=folder, capture_output=True, text=True, timeout=SECONDS)
    assert (done.returncode, done.stderr) == (0, "")
    return [each.split("\t")[0] for each in done.stdout.splitlines()]


def test_fish_completes_commands_options_words_and_files(scripts, tmp_path):
    need("fish")
    (tmp_path / "gateway.toml").touch()
    (tmp_path / "folder").mkdir()
    for typed, wanted in LINES[:-1]:
        told = [each.rstrip("/") for each in in_fish(scripts["fish"], tmp_path, "leveret " + typed)]
        assert wanted.split()[-1] in told, (typed, told)
    assert in_fish(scripts["fish"], tmp_path, "leveret serve --config log comp") == []
    assert set(in_fish(scripts["fish"], tmp_path, "leveret ")) == {name for name, _ in cli.COMMANDS}


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_every_command_and_flag_is_in_each_script_and_the_shell_can_read_it(shell, scripts):
    need(shell)
    assert subprocess.run([shell, "-n", scripts[shell]], capture_output=True, text=True).stderr == ""
    with open(scripts[shell]) as file:
        text = file.read()
    for command in command_tree.read().all():
        for word in command.path:
            assert word in text
        for flag in [flag for option in command.options for flag in option.flags]:
            assert (flag.replace("--", "-l ") if shell == "fish" and flag.startswith("--") else flag.lstrip("-")) in text, flag


def test_the_tree_has_what_the_parsers_have():
    top = command_tree.read()
    assert [each.path for each in top.commands] == [(name,) for name, _ in cli.COMMANDS]
    serve = next(each for each in top.commands if each.path == ("serve",))
    by_flag = {option.flags[-1]: option for option in serve.options}
    assert by_flag["--sync"].choices == ("each", "batch", "none") and by_flag["--config"].kind == command_tree.FILE
    assert by_flag["--data"].kind == command_tree.FOLDER and by_flag["--memory"].value == ""
    assert not any("%(" in option.help for command in top.all() for option in command.options + command.arguments)
