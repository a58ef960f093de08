"""`dev.py` on machines that lack something: one clear sentence, a non-zero exit status, no half-made environment taken for good."""

import ast
import os
import shutil
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEV = os.path.join(ROOT, "tools", "dev.py")


@pytest.fixture
def working_copy(tmp_path):
    """A copy of what set-up needs, without `.venv`."""
    for folder in ("tools", "core", "ports", "c_accel"):
        shutil.copytree(os.path.join(ROOT, folder), tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(os.path.join(ROOT, name), tmp_path)
    return tmp_path


def dev(directory, *arguments, **environment):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    return subprocess.run(
        [sys.executable, os.path.join(directory, "tools", "dev.py"), *arguments],
        capture_output=True,
        text=True,
        env={**clean, **environment},
        timeout=120,
    )


def test_an_old_python_gets_a_sentence_and_not_a_trace():
    with open(DEV) as file:
        ast.parse(file.read(), feature_version=(3, 4))
    program = (
        "import runpy, sys; sys.version_info = (3, 9, 2, 'final', 0); sys.argv = ['dev.py', 'test']; "
        f"runpy.run_path({DEV!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.startswith("Leveret needs Python 3.11 or newer, and this is 3.9")


@pytest.mark.parametrize("arguments", [(), ("dance",), ("test", "--fast"), ("check", "now")])
def test_wrong_arguments_end_with_2(arguments):
    done = dev(ROOT, *arguments)
    assert done.returncode == 2 and "Traceback" not in done.stderr and "error: " in done.stderr


def test_an_unknown_leg_is_refused_before_anything_is_set_up(working_copy):
    done = dev(working_copy, "test", "unit", "nonsense")
    assert done.returncode == 2 and "'nonsense'" in done.stderr and not (working_copy / ".venv").exists()


def test_debian_without_python3_venv_is_told_the_command(working_copy, tmp_path):
    (tmp_path / "hide").mkdir()
    (tmp_path / "hide" / "ensurepip.py").write_text("raise ImportError('as on Debian without python3-venv')\n")
    done = dev(working_copy, "check", PYTHONPATH=str(tmp_path / "hide"))
    assert done.returncode == 1 and "sudo apt-get install -y python3-venv" in done.stderr and "Traceback" not in done.stderr


def test_without_a_network_the_reason_and_the_log_are_named_and_the_next_run_tries_again(working_copy):
    unreachable = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0", "PIP_NO_CACHE_DIR": "1"}
    for _ in range(2):
        done = dev(working_copy, "check", **unreachable)
        assert done.returncode == 1 and "Check the network" in done.stderr and "Traceback" not in done.stderr
        log = done.stderr.rsplit("the log is ", 1)[1].strip()
        assert os.path.isfile(log) and log.startswith(str(working_copy))
    assert (working_copy / ".venv").exists() and not (working_copy / ".venv" / "leveret-stamp.json").exists()
