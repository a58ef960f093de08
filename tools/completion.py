"""`leveret completion bash|zsh|fish`: the script that has a shell complete the commands, their options, and words and files behind them.

    leveret completion bash > /etc/bash_completion.d/leveret      (or: source <(leveret completion bash))
    leveret completion zsh > a folder of $fpath, as _leveret
    leveret completion fish > ~/.config/fish/completions/leveret.fish

Laws: a script is written from the commands themselves (command_tree.py) and starts no Python when a key is pressed. Each of them first
walks over the words that are there: a word that is a command below the one so far goes down to it, a word behind an option that takes one
is passed.
"""

from . import command_tree

SHELLS = ("bash", "zsh", "fish")
HELP_MAX = 90  # characters

BASH = """# Completion of leveret for bash, written by `leveret completion bash`.
_leveret() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} at="" word last="" i
    if [[ $cur == = ]]; then cur=""
    elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        case "$at $last" in @TAKES@) last=""; [[ $word == = ]] && last=${COMP_WORDS[i-1]}; continue;; esac
        last=$word
        case "$at $word" in
@DOWN@
        esac
    done
    case "$at $prev" in
@VALUES@
    esac
    if [[ $cur == -* ]]; then
        case "$at" in
@OPTIONS@
        esac
        return
    fi
    case "$at" in
@WORDS@
    esac
}
complete -F _leveret leveret
"""
ZSH = """#compdef leveret
# Completion of leveret for zsh, written by `leveret completion zsh`.
_leveret() {
    local at="" last="" word i
    local -a told
    for ((i = 2; i < CURRENT; i++)); do
        word=${words[i]}
        case "$at $last" in @TAKES@) last=""; continue;; esac
        last=$word
        case "$at $word" in
@DOWN@
        esac
    done
    if [[ $PREFIX == --*=* ]]; then
        last=${PREFIX%%=*}
        compset -P '*='
    fi
    case "$at $last" in
@VALUES@
    esac
    if [[ $PREFIX == -* ]]; then
        case "$at" in
@OPTIONS@
        esac
        _describe -o option told
        return
    fi
    case "$at" in
@WORDS@
    esac
}
if [[ $funcstack[1] == _leveret ]]; then _leveret "$@"; else compdef _leveret leveret; fi
"""
FISH = """# Completion of leveret for fish, written by `leveret completion fish`.
function __leveret_at
    set -l at ''
    set -l last ''
    for word in (commandline -opc)[2..-1]
        switch "$at $last"
            case @TAKES@
                set last ''
                continue
        end
        set last $word
        switch "$at $word"
@DOWN@
        end
    end
    test "$at" = "$argv"
end
complete -c leveret -f
@LINES@
"""


def add_arguments(parser):
    """The subcommand's arguments."""
    parser.add_argument("shell", choices=SHELLS, help="whose script is printed")


def run(options):
    """Print the script."""
    print(script(options.shell, command_tree.read()), end="")
    return 0


def script(shell, top):
    """The text for a shell. `top`: a Command."""
    return {"bash": bash, "zsh": zsh, "fish": fish}[shell](list(top.all()))


def name(command):
    """A command as the scripts' walk has it: "log check"."""
    return " ".join(command.path)


def takers(commands):
    """(command's name, flag) of every option that takes a word."""
    return [(name(command), flag) for command in commands for option in command.options if option.value for flag in option.flags]


def filled(text, **lists):
    """A template with its lists put in."""
    for key, lines in lists.items():
        text = text.replace(f"@{key}@", lines if isinstance(lines, str) else "\n".join(lines))
    return text


def words_of(command):
    """Words that may stand at a command's place: (word, help)."""
    pairs = [(each.path[-1], each.help) for each in command.commands]
    return pairs + [(word, option.help) for option in command.arguments for word in option.choices]


def kinds_of(command):
    """Of files and folders, what may stand at a command's place."""
    return {option.kind for option in command.arguments if not option.choices} - {command_tree.NOTHING}


def brief(help):
    """The beginning of a help text, for a line beside a word."""
    return help if len(help) <= HELP_MAX else help[: HELP_MAX - 3].rstrip() + "..."


def bash(commands):
    """The script for bash."""
    ways = {command_tree.FILE: "compgen -f", command_tree.FOLDER: "compgen -d"}

    def reply(*parts):
        return "COMPREPLY=(" + " ".join(f'$({each} -- "$cur")' for each in parts) + ")"

    values, words, lines = [], [], []
    for command in commands:
        for option in command.options:
            if option.value:
                cases = "|".join(f"'{name(command)} {flag}'" for flag in option.flags)
                way = f"compgen -W '{' '.join(option.choices)}'" if option.choices else ways.get(option.kind)
                files = "compopt -o filenames; " if option.kind and not option.choices else ""
                values.append(f"    {cases}) {files}{reply(way) if way else 'COMPREPLY=()'}; return;;")
        flags = " ".join(flag for option in command.options for flag in option.flags)
        lines.append(f"        '{name(command)}') {reply(f'compgen -W {chr(39)}{flags}{chr(39)}')};;")
        there = " ".join(word for word, _ in words_of(command))
        parts = [f"compgen -W '{there}'"] * bool(there) + [ways[kind] for kind in sorted(kinds_of(command))]
        files = "compopt -o filenames; " if kinds_of(command) else ""
        if parts:
            words.append(f"    '{name(command)}') {files}{reply(*parts)};;")
    return filled(BASH, TAKES=taking(commands), DOWN=going_down(commands), VALUES=values, OPTIONS=lines, WORDS=words)


def taking(commands):
    """The pattern of an option that takes the next word, for bash and zsh."""
    return "|".join(f"'{at} {flag}'" for at, flag in takers(commands))


def going_down(commands):
    """The cases of the walk, for bash and zsh."""
    return [f"        '{' '.join(each.path[:-1])} {each.path[-1]}') at='{name(each)}'; last='';;" for each in commands if each.path]


def zsh(commands):
    """The script for zsh."""

    def quoted(word, help):
        return "'" + (word.replace(":", "\\:") + (":" + brief(help).replace("\\", "\\\\") if help else "")).replace("'", "'\\''") + "'"

    values, words, lines = [], [], []
    for command in commands:
        for option in command.options:
            if option.value:
                cases = "|".join(f"'{name(command)} {flag}'" for flag in option.flags)
                files = {command_tree.FILE: "_files", command_tree.FOLDER: "_files -/"}.get(
                    option.kind, "_message " + quoted_message(option)
                )
                values.append(f"    {cases}) {'compadd -- ' + ' '.join(option.choices) if option.choices else files}; return;;")
        flags = " ".join(quoted(flag, option.help) for option in command.options for flag in option.flags)
        lines.append(f"        '{name(command)}') told=({flags});;")
        parts = []
        if words_of(command):
            parts.append("told=(" + " ".join(quoted(*each) for each in words_of(command)) + "); _describe -t commands command told")
        parts += [{command_tree.FILE: "_files", command_tree.FOLDER: "_files -/"}[kind] for kind in sorted(kinds_of(command))]
        if parts:
            words.append(f"    '{name(command)}') {'; '.join(parts)};;")
    return filled(ZSH, TAKES=taking(commands), DOWN=going_down(commands), VALUES=values, OPTIONS=lines, WORDS=words)


def quoted_message(option):
    """The placeholder of an argument, which zsh shows where it has no words."""
    return "'" + option.value.replace("'", "'\\''") + "'"


def fish(commands):
    """The script for fish."""

    def quoted(text):
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    lines = []
    for command in commands:
        at = f"complete -c leveret -n {quoted('__leveret_at ' + (quoted(name(command)) if command.path else quoted('')))}"
        for word, help in words_of(command):
            lines.append(f"{at} -a {quoted(word)} -d {quoted(brief(help))}")
        kinds = kinds_of(command)
        if kinds:
            lines.append(f"{at} -F" if command_tree.FILE in kinds else f"{at} -a '(__fish_complete_directories)'")
        for option in command.options:
            flags = " ".join(f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}" for flag in option.flags)
            value = ""
            if option.choices:
                value = f" -x -a {quoted(' '.join(option.choices))}"
            elif option.value:
                value = {command_tree.FILE: " -r -F", command_tree.FOLDER: " -x -a '(__fish_complete_directories)'"}.get(option.kind, " -x")
            lines.append(f"{at} {flags}{value} -d {quoted(brief(option.help))}")
    down = []
    for each in commands:
        if each.path:
            down += [
                f"            case '{' '.join(each.path[:-1])} {each.path[-1]}'",
                f"                set at '{name(each)}'",
                "                set last ''",
            ]
    taken = " ".join(f"'{at} {flag}'" for at, flag in takers(commands))
    return filled(FISH, TAKES=taken, DOWN=down, LINES=lines)
