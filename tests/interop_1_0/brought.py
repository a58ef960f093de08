"""Brings what these tests run on: jars from Maven Central, rhea from npm, Python clients from PyPI, each by version and hash.

Laws: everything lies in .cache/interop_1_0 of the working copy (not tracked) and comes by mvn, npm and pip, whose own caches are used;
what is there already is not fetched again; what does not have the hash that stands here is not used; failures are sentences in `Missing`.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.path.join(os.path.dirname(os.path.dirname(HERE)), ".cache", "interop_1_0")
JARS = os.path.join(CACHE, "jars")
COPY_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
FETCH_S_MAX = 600
DONE = "done"  # a file with the hash of what a folder was made from, written last


class Missing(Exception):
    """Something could not be had; the text is one sentence."""


def _run(what, command, directory):
    """Run a package client or a compiler; Missing with the last thing that it said."""
    try:
        done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=FETCH_S_MAX)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Missing(f"{what} could not be had: {error}") from None
    if done.returncode:
        told = [line for line in (done.stderr + done.stdout).splitlines() if "error" in line.lower()] or ["it said nothing"]
        raise Missing(f"{what} could not be had ({told[0][:300]}); try it by hand in {directory}: {' '.join(command)}")


class _Locked:
    """Only one process makes a folder of the cache at a time."""

    def __init__(self, name):
        os.makedirs(CACHE, exist_ok=True)
        self.path = os.path.join(CACHE, name + ".lock")

    def __enter__(self):
        self.file = open(self.path, "w")
        fcntl.flock(self.file, fcntl.LOCK_EX)

    def __exit__(self, *error):
        self.file.close()


def _octets(*paths):
    """Contents of files, one behind the other."""
    octets = b""
    for path in paths:
        with open(path, "rb") as file:
            octets += file.read()
    return octets


def _made(name, source, make):
    """The folder CACHE/name, made anew by make(folder) unless it was made from the same octets `source`."""
    folder = os.path.join(CACHE, name)
    stamp = os.path.join(folder, DONE)
    wanted = hashlib.sha256(source).hexdigest()
    with _Locked(name):
        if os.path.exists(stamp) and _octets(stamp).decode() == wanted:
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        make(folder)
        with open(stamp, "w") as file:
            file.write(wanted)
    return folder


def jars():
    """The class path of all jars, as pom.xml names them and jars.sha256 has their hashes."""
    pom, hashes = os.path.join(HERE, "pom.xml"), os.path.join(HERE, "jars.sha256")

    def make(folder):
        _run("the jars", ["mvn", "-q", "-B", "-f", pom, COPY_GOAL, "-DoutputDirectory=" + folder], HERE)
        lines = _octets(hashes).decode().splitlines()
        wanted = {name: digest for digest, name in (line.split() for line in lines)}
        got = {name: hashlib.sha256(_octets(os.path.join(folder, name))).hexdigest() for name in os.listdir(folder)}
        wrong = sorted(name for name in wanted.keys() | got.keys() if wanted.get(name) != got.get(name))
        if wrong:
            raise Missing(f"Maven brought other jars than jars.sha256 names: {', '.join(wrong)}")

    return os.path.join(_made("jars", _octets(pom, hashes), make), "*")


def proton_cpp():
    """The command that runs the program of cpp/, compiled against Debian's libqpid-proton-cpp."""
    source = os.path.join(HERE, "cpp", "proton_client.cpp")

    def make(folder):
        _run("the C++ program", ["g++", "-std=c++17", "-o", os.path.join(folder, "proton_client"), source, "-lqpid-proton-cpp"], HERE)

    return [os.path.join(_made("proton_cpp", _octets(source), make), "proton_client")]


# The client compiler alone: most of these programs live for seconds, and two cores are shared with the rest of the tests.
BRIEF = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m", "-Xshare:auto")
LONG = ("-Xmx2g",)  # where it is measured


def java(name, *arguments, flags=BRIEF):
    """The command that runs a program of java/, compiled."""
    sources = sorted(os.path.join(HERE, "java", file) for file in os.listdir(os.path.join(HERE, "java")) if file.endswith(".java"))
    path = jars()
    classes = _made(
        "classes", _octets(*sources), lambda folder: _run("the Java programs", ["javac", "-cp", path, "-d", folder, *sources], HERE)
    )
    return ["java", *flags, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", os.pathsep.join([classes, path]), name, *arguments]


def python():
    """The Python of an environment that has the clients of requirements.txt."""
    requirements = os.path.join(HERE, "requirements.txt")

    def make(folder):
        _run("the Python clients", [sys.executable, "-m", "venv", folder], HERE)
        pip = [os.path.join(folder, "bin", "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run("the Python clients", [*pip, "--no-deps", "--require-hashes", "--requirement", requirements], HERE)

    return os.path.join(_made("python", _octets(requirements) + sys.version.encode(), make), "bin", "python")


def node_program(program):
    """Path of a copy of this program that lies beside the packages of package-lock.json, where node looks for them."""
    files = [os.path.join(HERE, "node", name) for name in ("package.json", "package-lock.json")]

    def make(folder):
        for path in files:
            shutil.copy(path, folder)
        _run("rhea", ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], folder)

    return shutil.copy(program, _made("node", _octets(*files), make))
