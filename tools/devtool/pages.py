"""The pages of the tree (Markdown files): which there are, their fenced blocks, links, headings. It reads files and opens nothing else."""

import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = ("core", "ports", "c_accel", "boards", "firmware", "tools", "tests")
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def names():
    """Paths of all pages, relative to ROOT: those at the top, then by folder."""
    paths = [name for name in sorted(os.listdir(ROOT)) if name.endswith(".md")]
    for folder in FOLDERS:
        for directory, below, files in os.walk(os.path.join(ROOT, folder)):
            below[:] = sorted(name for name in below if not name.startswith((".", "__pycache__", "node_modules")))
            paths += [os.path.relpath(os.path.join(directory, name), ROOT) for name in sorted(files) if name.endswith(".md")]
    return paths


def read(name):
    with open(os.path.join(ROOT, name), encoding="utf-8") as file:
        return file.read()


def fences(text, *languages):
    """The texts of the fenced blocks in one of `languages`, in order."""
    blocks = []
    for indent, language, block in FENCE.findall(text):
        if language in languages:
            blocks.append("".join(line[len(indent) :] for line in block.splitlines(keepends=True)))
    return blocks


def prose(text):
    """The text without its fenced blocks and pieces of code: what may have links in it."""
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))


def links(text):
    """The targets of links and images that are not on the network."""
    return [target for target in re.findall(r"\]\(([^)\s]+)\)", prose(text)) if not re.match(r"[a-z]+:", target)]


def anchors(text):
    """The names of a page's headings, as GitHub makes them; of equal ones the second ends in -1 and so on."""
    names: list = []
    for heading in re.findall(r"^#+ +(.*?) *$", FENCE.sub("", text), re.MULTILINE):
        name = re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "]", heading).lower()).replace(" ", "-")
        names.append(name if name not in names else "%s-%d" % (name, sum(each.startswith(name) for each in names)))
    return names


def dead_links():
    """(page, target) of each link that leads to no file, or to no heading of its page."""
    known = {name: anchors(read(name)) for name in names()}
    for page in known:
        for target in links(read(page)):
            path, _, anchor = target.partition("#")
            file = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
            if not os.path.exists(os.path.join(ROOT, file)) or anchor and anchor not in known.get(file, ()):
                yield page, target
