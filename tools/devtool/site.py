"""`dev.py site`: the pages of the tree and the API, from docstrings, as a site in build/site.

    python3 tools/dev.py site          then open build/site/index.html

Laws: every page of pages.names() is in it, and the files that pages link to; a dead link, to a file or to a heading, fails, and so does
each warning of mkdocs. Pages stay where they are: copies are made in build/site-pages, with the same paths, so that links fit both.
"""

import json
import os
import shutil
import subprocess
import sys

from . import pages
from .pages import ROOT

STAGED = os.path.join(ROOT, "build", "site-pages")
SITE = os.path.join(ROOT, "build", "site")
SOURCES = os.path.join(ROOT, "build", "site-sources")  # the package as Python sees it: leveret/core, leveret/ports ...
BASE = os.path.join(ROOT, "tools", "devtool", "mkdocs.yml")
PACKAGES = ("core", "ports", "c_accel", "tools")
# Sections in the order of the three readers: who runs it, who connects to it, who builds on it. Pages that no row names come behind.
SECTIONS = (
    (
        "Run it",
        (
            "tools/SERVE.md",
            "tools/SETTINGS.md",
            "core/LIMITS.md",
            "tools/DATA.md",
            "tools/ACCESS.md",
            "tools/MANAGE.md",
            "tools/PERF.md",
            "core/REFUSALS.md",
            "core/CONVERSIONS.md",
            "SECURITY.md",
            "CHANGELOG.md",
        ),
    ),
    (
        "Connect to it",
        ("ports/CLIENTS.md", "ports/SERIAL.md", "ports/bridge/README.md", "ports/spark/README.md", "boards/README.md", "core/SPEC.md"),
    ),
    ("Work on it", ("tools/README.md", "tests/README.md", "core/DESIGN.md")),
)
HIDDEN = ("devtool",)
OPTIONS = {
    "show_source": False,
    "members_order": "source",
    "show_root_heading": True,
    "show_root_full_path": True,
    "heading_level": 2,
    "docstring_style": None,
    "show_if_no_docstring": False,
    "separate_signature": True,
}


def stage(name, text=None):
    """Put a file of the tree, or `text`, into STAGED under the same name."""
    path = os.path.join(STAGED, name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if text is None:
        shutil.copyfile(os.path.join(ROOT, name), path)
    else:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def linked_files():
    """The files that pages link to and that are no pages, as images."""
    names = pages.names()
    linked = {
        os.path.normpath(os.path.join(os.path.dirname(page), target.partition("#")[0]))
        for page in names
        for target in pages.links(pages.read(page))
        if target.partition("#")[0]
    }
    return sorted(name for name in linked - set(names) if os.path.isfile(os.path.join(ROOT, name)))


def modules():
    """{folder: its modules' names} of everything that has an API, in the tree's order."""
    folders = {}
    for package in PACKAGES:
        for directory, below, files in os.walk(os.path.join(ROOT, package)):
            below[:] = sorted(name for name in below if name not in HIDDEN and not name.startswith((".", "_")))
            folder = os.path.relpath(directory, ROOT)
            names = sorted(name[:-3] for name in files if name.endswith(".py") and name != "__init__.py")
            if names:
                folders[folder] = names
    return folders


def api_pages():
    """The API: a page for each folder. Rows of nav."""
    rows = []
    for folder, names in modules().items():
        dotted = "leveret." + folder.replace(os.sep, ".")
        page = "api/%s.md" % folder.replace(os.sep, "_")
        stage(page, "# %s\n\n" % dotted + "".join("::: %s.%s\n\n" % (dotted, name) for name in names))
        rows.append({dotted: page})
    return rows


def title(name):
    """The text behind the first # of a page."""
    return next(line[2:].strip() for line in pages.read(name).splitlines() if line.startswith("# "))


def navigation(api):
    named = {name for _, names in SECTIONS for name in names} | {"README.md"}
    rest = [name for name in pages.names() if name not in named]
    sections = [{heading: [{title(name): name} for name in names]} for heading, names in SECTIONS]
    sections[-1]["Work on it"] += [{title(name): name} for name in rest if not name.startswith("core/decisions/")]
    decisions = [{title(name): name} for name in rest if name.startswith("core/decisions/")]
    return [{"Leveret": "README.md"}] + sections + ([{"Decisions": decisions}] if decisions else []) + [{"API": api}]


def link_sources():
    """SOURCES/leveret with a link to each package, where mkdocstrings reads."""
    shutil.rmtree(SOURCES, ignore_errors=True)
    os.makedirs(os.path.join(SOURCES, "leveret"))
    for package in PACKAGES:
        os.symlink(os.path.join(ROOT, package), os.path.join(SOURCES, "leveret", package))


def main():
    """The exit status."""
    dead = list(pages.dead_links())
    for page, target in dead:
        print("%s links to %s, which is not there" % (page, target))
    if dead:
        return 1
    shutil.rmtree(STAGED, ignore_errors=True)
    for name in pages.names() + linked_files():
        stage(name)
    link_sources()
    handler = {"python": {"paths": [SOURCES], "options": OPTIONS}}
    settings = {
        "INHERIT": BASE,
        "docs_dir": STAGED,
        "site_dir": SITE,
        "nav": navigation(api_pages()),
        "plugins": ["search", {"mkdocstrings": {"default_handler": "python", "handlers": handler}}],
    }
    path = os.path.join(ROOT, "build", "site.yml")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(settings, file)  # JSON is YAML
    status = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--clean", "--config-file", path],
        cwd=ROOT,
        env=dict(os.environ, NO_MKDOCS_2_WARNING="1"),
    ).returncode
    if status == 0:
        print("%d pages, %d of the API: %s" % (len(pages.names()), len(modules()), os.path.join(SITE, "index.html")))
    return status


if __name__ == "__main__":
    sys.exit(main())
