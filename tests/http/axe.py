"""axe-core in the browser of a test: what of a page somebody who sees little, or uses no mouse, could not use.

The package comes from npm, by the version and hash of axe_core/package-lock.json, into .cache/axe_core of the working copy (not tracked).
"""

import json
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
PINNED = os.path.join(HERE, "axe_core")
CACHE = os.path.join(os.path.dirname(os.path.dirname(HERE)), ".cache", "axe_core")
SECONDS = 300
SERIOUS = ("serious", "critical")


def script():
    """The source of axe-core, brought where it is missing."""
    with open(os.path.join(PINNED, "package.json"), encoding="utf-8") as file:
        wanted = json.load(file)["dependencies"]["axe-core"]
    folder = os.path.join(CACHE, "node_modules", "axe-core")
    try:
        with open(os.path.join(folder, "package.json"), encoding="utf-8") as file:
            there = json.load(file)["version"]
    except FileNotFoundError:
        there = None
    if there != wanted:
        shutil.copytree(PINNED, CACHE, dirs_exist_ok=True)
        command = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
        done = subprocess.run(command, cwd=CACHE, capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == 0, done.stderr[-2000:]
    with open(os.path.join(folder, "axe.min.js"), encoding="utf-8") as file:
        return file.read()


def findings(browser):
    """What axe-core finds on the page that is shown: [(rule, impact, where)], the serious and critical ones."""
    if not browser.run("typeof axe === 'object'"):
        browser.run(script() + "; true")
    told = browser.run("axe.run(document, { resultTypes: ['violations'] }).then((each) => JSON.stringify(each.violations))")
    rows = json.loads(told)
    return [(row["id"], row["impact"], [node["html"][:200] for node in row["nodes"][:3]]) for row in rows if row["impact"] in SERIOUS]
