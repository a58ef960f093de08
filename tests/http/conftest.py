"""Fixtures of the HTTP tests: one broker process for each file that asks for it, with its API on a free port."""

import os
import sys

import pytest

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "interop"))  # broker_process.py, certificates.py
sys.path.append(os.path.join(os.path.dirname(__file__), "..", "unit"))  # scripted peers

from api import Api, Served

CONFIG = """
[[user]]
name = "guest"
password = "guest"
tags = ["administrator"]
configure = ".*"
write = ".*"
read = ".*"
[[user]]
name = "viewer"
password = "viewer"
tags = ["management"]
configure = "^mine"
write = "^mine"
read = "^mine"
[[user]]
name = "watcher"
password = "watcher"
tags = ["monitoring"]
[[user]]
name = "maker"
password = "maker"
tags = ["policymaker"]
configure = ""
write = ""
read = ""
[[user]]
name = "nobody"
password = "nobody"
configure = ".*"
write = ".*"
read = ".*"
"""


@pytest.fixture(scope="session")
def configured(tmp_path_factory):
    """The file with the users of the tests."""
    path = tmp_path_factory.mktemp("http") / "leveret.toml"
    path.write_text(CONFIG)
    return str(path)


@pytest.fixture(scope="module")
def served(configured):
    """A broker with its API."""
    process = Served("--config", configured)
    yield process
    assert process.alive(), process.error_text()
    assert process.stop() == 0
    assert "Traceback" not in process.errors and "an error of this broker" not in process.errors, process.errors


@pytest.fixture
def api(served):
    """The API as the administrator."""
    return Api(served.http_port, "guest")
