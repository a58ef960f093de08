"""The suites: what each needs and how it is run against one broker.

`SUITES`: name -> Suite. `run(name, kind)` starts a broker of its own (tests close each other's connections), runs the suite, ends the
broker and gives (outcome, what the broker wrote to standard error), outcome as {test: "passed", "skipped" or what went wrong}.
It raises SuiteFailed when the suite itself did not come to an end, and ArchiveMissing (archives.py).
"""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, os.pardir, "interop"))

import amqp_tools_checks  # noqa: E402 - the path above has to be set first
import archives  # noqa: E402 - the path above has to be set first
import checks  # noqa: E402 - the path above has to be set first
from broker_process import BrokerProcess, free_port  # noqa: E402 - the path above has to be set first
from certificates import Authority  # noqa: E402 - the path above has to be set first

from leveret.tools import components  # noqa: E402 - after the path, with the others

SUITE_S_MAX = 150


class SuiteFailed(Exception):
    """A suite that ended without results; the text holds the end of what it wrote."""


class Suite:
    """`run(broker, folder)` gives the outcome; `needs`: the component (leveret/tools/components.py) without which it is left out."""

    def __init__(self, run, needs=None, over_tls=False):
        self.run = run
        self.needs = needs
        self.over_tls = over_tls


def child(command, folder, environment):
    """Run a program to its end: its standard output. Raises SuiteFailed when it takes too long."""
    environment = {**os.environ, **environment}
    environment.pop("PYTEST_ADDOPTS", None)
    try:
        return subprocess.run(
            command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=SUITE_S_MAX
        ).stdout
    except subprocess.TimeoutExpired as error:
        raise SuiteFailed(f"it did not end within {SUITE_S_MAX} s:\n{(error.stdout or b'').decode()[-2000:]}") from None


def pytest_suite(folder, broker, path, *arguments):
    """Run someone else's pytest tests in their own unpacked folder."""
    record = os.path.join(folder, "junit.xml")
    command = [sys.executable, "-m", "pytest", "-q", "--disable-warnings", "-p", "no:cacheprovider", "--junitxml", record, *arguments, path]
    told = child(
        command,
        folder,
        {"RABBITMQ_HOST": "127.0.0.1", "RABBITMQ_5672_TCP": str(broker.port), "RABBITMQ_5671_TCP": str(getattr(broker, "tls_port", 0))},
    )
    if not os.path.exists(record):
        raise SuiteFailed("pytest left no record:\n" + told[-2000:])
    return outcome_of(xml.etree.ElementTree.parse(record).getroot())


def outcome_of(junit):
    """{test: outcome} of pytest's record; a test is named by its class or module and its own name."""
    outcome = {}
    for case in junit.iter("testcase"):
        name = f"{case.get('classname').rpartition('.')[2]}::{case.get('name')}"
        trouble = [each.get("message", "") for each in case if each.tag in ("failure", "error")]
        if trouble:
            outcome[name] = "failed: " + trouble[0][:400]
        else:
            outcome[name] = "skipped" if case.find("skipped") is not None else checks.PASSED
    return outcome


def py_amqp(broker, folder):
    """The tests named default_certs reach hosts on the internet: they are left out (and have nothing to do with a broker)."""
    unpacked = archives.unpack("amqp", folder)
    shutil.copytree(broker.certificates, os.path.join(unpacked, "t", "certs"))
    return pytest_suite(unpacked, broker, "t/integration/test_rmq.py", "-k", "not default_certs")


def kombu(broker, folder):
    return pytest_suite(archives.unpack("kombu", folder), broker, "t/integration/test_py_amqp.py")


def converter():
    """The name of a module that makes Python 3 of Python 2: the standard library's until 3.12, or fissix. None: there is none."""
    return next((name for name in ("lib2to3", "fissix") if importlib.util.find_spec(name)), None)


def py_amqplib(broker, folder):
    """py-amqplib speaks 0-8, in Python 2: it and its tests are converted here, and run by their own program."""
    unpacked = archives.unpack("amqplib", folder)
    child([sys.executable, "-W", "ignore", "-m", converter(), "-W", "-n", "-w", "--no-diffs", "amqplib", "tests"], unpacked, {})
    tests = os.path.join(unpacked, "tests", "client_0_8")
    command = [sys.executable, "-W", "ignore", "run_all.py", "--host", f"127.0.0.1:{broker.port}", "--verbose"]
    return outcome_told(child(command, tests, {"PYTHONPATH": unpacked}))


def outcome_told(text):
    """{test: outcome} of what unittest writes: the test, a line of its docstring where it has one, and `... ok` or what went wrong."""
    told = re.findall(r"^(test_\w+) \(\w+\.(\w+)\b[\w.]*\)(?:\n.*)? \.\.\. (\w+)$", text, re.MULTILINE)
    if f"Ran {len(told)} tests" not in text:
        raise SuiteFailed("not all of its tests were told:\n" + text[-2000:])
    return {f"{group}::{name}": checks.PASSED if word == "ok" else "failed: " + word for name, group, word in told}


def amqp_tools(broker, folder):
    return checks.run(amqp_tools_checks, broker.port)


def celery(broker, folder):
    url = f"amqp://guest:guest@127.0.0.1:{broker.port}//"
    told = child([sys.executable, os.path.join(HERE, "celery_checks.py"), url, folder], HERE, {})
    try:
        return json.loads(told.strip().rpartition("\n")[2])
    except ValueError:
        raise SuiteFailed("it ended without its outcome:\n" + told[-2000:]) from None


SUITES = {
    "py-amqp": Suite(py_amqp, over_tls=True),
    "kombu": Suite(kombu),
    "amqp-tools": Suite(amqp_tools, needs=components.AMQP_TOOLS),
    "celery": Suite(celery),
    "py-amqplib": Suite(py_amqplib, needs=components.TO_PYTHON_3),
}


def make_certificates(folder):
    """What py-amqp's tests look for in t/certs: (directory, server's certificate, server's key). The broken ones are a stranger's."""
    directory = os.path.join(folder, "certs")
    authority = Authority(os.path.join(folder, "authority"))
    stranger = Authority(os.path.join(folder, "stranger"), "stranger")
    os.makedirs(directory)
    shutil.copy(authority.certificate, os.path.join(directory, "ca_certificate.pem"))
    for signer, ending in ((authority, ""), (stranger, "_broken")):
        certificate, key = signer.issue("client", "/CN=client")
        shutil.copy(certificate, os.path.join(directory, f"client_certificate{ending}.pem"))
        shutil.copy(key, os.path.join(directory, f"client_key{ending}.pem"))
    return directory, *authority.issue("server", "/CN=localhost")


def start(kind, folder, over_tls):
    """A broker of this kind; with `tls_port` and `certificates` (a directory) if it is to have TLS."""
    if not over_tls:
        return BrokerProcess(kind)
    directory, certificate, key = make_certificates(folder)
    authority = os.path.join(directory, "ca_certificate.pem")
    port = free_port()
    broker = BrokerProcess(
        kind,
        arguments=("--listen", f"amqps://127.0.0.1:{port}?cert={certificate}&key={key}&ca={authority}"),
        configuration=f"listeners.ssl.default = 127.0.0.1:{port}\nssl_options.cacertfile = {authority}\n"
        f"ssl_options.certfile = {certificate}\nssl_options.keyfile = {key}\n"
        "ssl_options.verify = verify_peer\nssl_options.fail_if_no_peer_cert = false\n",
    )
    broker.tls_port = port
    broker.certificates = directory
    return broker


def run(name, kind):
    """Run one suite against a fresh broker of this kind."""
    suite = SUITES[name]
    folder = tempfile.mkdtemp(prefix="suite_")
    try:
        broker = start(kind, folder, suite.over_tls)
        try:
            outcome = suite.run(broker, folder)
            alive = broker.alive()
            written = broker.error_text()
        finally:
            broker.stop()
        if not alive:
            raise SuiteFailed("the broker died:\n" + written[-2000:])
        return outcome, written
    finally:
        shutil.rmtree(folder, ignore_errors=True)
