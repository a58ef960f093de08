"""`dev.py lock`: the lock files, which name every package that an installation takes by its version and its octets (SHA-256).

    locks/core.txt              what pip needs for `leveret` itself, and what builds it
    locks/demo.txt, ...         what the extra of that name in pyproject.toml brings

Laws: uv writes them, from the package index, for every Python from 3.11 on and every machine; the same package has one version in all of
them; one that pyproject.toml does not name stays at its version until its lines are deleted. `dev.py setup` installs nothing that is not in
them (environment.py); `dev.py check` compares them with pyproject.toml, and asks pip-audit about them (audit.py).
"""

import os
import re
import subprocess
import sys
import tempfile
import tomllib

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDER = os.path.join(ROOT, "tools", "devtool", "locks")
CORE = "core"
UV = "uv==0.13.9"
PYTHON = "3.11"  # the oldest that pyproject.toml allows
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)(.*)")


def path_of(group):
    """The lock file of a group."""
    return os.path.join(FOLDER, group + ".txt")


def groups():
    """{group: what pyproject.toml asks for} of all extras, and of CORE."""
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        project = tomllib.load(file)
    return {CORE: project["build-system"]["requires"] + project["project"]["dependencies"], **project["project"]["optional-dependencies"]}


def name_of(package):
    """A package's name as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", package).lower()


def pins(group):
    """{name: versions, as a set} of a lock file: several where Pythons differ; nothing where there is no file."""
    known: dict = {}
    try:
        with open(path_of(group), encoding="utf-8") as file:
            for pin in filter(None, map(PIN.match, file)):
                known.setdefault(name_of(pin[1]), set()).add(pin[2])
    except FileNotFoundError:
        pass
    return known


def asked(group):
    """{name: version} of what pyproject.toml asks for: it names exact versions."""
    return {name_of(pin[1]): pin[2] for pin in map(PIN.match, groups()[group]) if pin}


def faults():
    """What pyproject.toml and the lock files disagree on, as sentences."""
    for group in groups():
        locked = pins(group)
        if not locked:
            yield f"there is no {os.path.relpath(path_of(group), ROOT)}; run: python3 tools/dev.py lock"
        for name, version in asked(group).items():
            if locked and locked.get(name) != {version}:
                there = ", ".join(sorted(locked.get(name, ()))) or "no"
                yield f"locks/{group}.txt has {name} {there}, pyproject.toml {version}; run: python3 tools/dev.py lock"
    for name in sorted(os.listdir(FOLDER)):
        if os.path.splitext(name)[0] not in groups():
            yield f"locks/{name} belongs to no extra of pyproject.toml: delete it"


def compile_one(uv, wanted, constraints, out):
    """Have uv write a lock file."""
    command = [uv, "pip", "compile", "-", "--quiet", "--universal", "--python-version", PYTHON, "--generate-hashes"]
    command += ["--custom-compile-command", "python3 tools/dev.py lock", "--constraints", constraints, "--output-file", out]
    if subprocess.run(command, input="\n".join(wanted), text=True).returncode:
        sys.exit(f"uv could not write {out}: what it said stands above")


def main():
    """Write all lock files."""
    known = {name: next(iter(versions)) for group in groups() for name, versions in pins(group).items() if len(versions) == 1}
    for group in groups():
        known.update(asked(group))
    with tempfile.TemporaryDirectory(prefix="leveret-lock-") as folder:
        subprocess.run([sys.executable, "-m", "venv", os.path.join(folder, "venv")], check=True)
        subprocess.run([os.path.join(folder, "venv", "bin", "python"), "-m", "pip", "install", "--quiet", UV], check=True)
        uv = os.path.join(folder, "venv", "bin", "uv")
        constraints, together = os.path.join(folder, "known.txt"), os.path.join(folder, "together.txt")
        with open(constraints, "w", encoding="utf-8") as file:
            file.writelines(f"{name}=={known[name]}\n" for name in sorted(known))
        compile_one(uv, [each for wanted in groups().values() for each in wanted], constraints, together)
        os.makedirs(FOLDER, exist_ok=True)
        for group, wanted in groups().items():
            compile_one(uv, wanted, together, path_of(group))
    return 0


if __name__ == "__main__":
    sys.exit(main())
