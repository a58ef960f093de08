"""The wheel holds the packages and nothing else, and what it installs works without the working copy."""

import importlib
import os
import subprocess
import sys
import tomllib
import zipfile

import pytest
from packaging.requirements import Requirement

from leveret.ports.client import connect

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FOLDERS = {
    "core": "leveret/core",
    "c_accel": "leveret/c_accel",
    "ports": "leveret/ports",
    "tools": "leveret/tools",
    "boards": "leveret/boards",
    "firmware": "leveret/firmware",
}


def built_wheel(directory, **environment):
    source = directory / "source"
    # Built from a copy: a build leaves folders behind in the tree it builds from.
    subprocess.run(
        [
            "cp",
            "-r",
            *[os.path.join(ROOT, name) for name in (*FOLDERS, "pyproject.toml", "README.md", "LICENSE")],
            str(source.mkdir() or source),
        ],
        check=True,
    )
    done = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(directory), str(source)],
        capture_output=True,
        text=True,
        timeout=1200,
        env=dict(os.environ, **environment),
    )
    assert done.returncode == 0, done.stderr
    return next(directory.glob("leveret-*.whl"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return built_wheel(tmp_path_factory.mktemp("wheel"))


def installed(wheel, directory):
    """The path of `leveret` in a virtual environment with nothing but this wheel."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(directory / "venv")], check=True)
    python = directory / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "pip", "-q", "--python", str(python), "install", "--no-deps", str(wheel)], check=True)
    return str(directory / "venv" / "bin" / "leveret")


def c_modules(names):
    return [name for name in names if name.startswith(("leveret/c_accel/_hot.", "leveret/c_accel/_perf.")) and name.endswith(".so")]


def test_a_machine_without_a_compiler_gets_a_wheel_without_the_c_module_that_serves(tmp_path):
    """And says so, with what brings it; `leveret perf`, which measures in C, says it too."""
    made = built_wheel(tmp_path, CC="no-such-compiler")
    with zipfile.ZipFile(made) as archive:
        names = archive.namelist()
    assert "leveret/c_accel/__init__.py" in names and not c_modules(names)
    leveret = installed(made, tmp_path)
    server = subprocess.Popen(
        [leveret, "serve", "--listen", "amqp://127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    url = server.stdout.readline().split()[1]
    client = connect(url)
    client.queue_declare("q")
    client.publish("", "q", b"in plain Python")
    assert client.get("q").body == b"in plain Python"
    client.close()
    done = subprocess.run([leveret, "perf", url], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 2 and "the C module was not built: with a C compiler" in done.stderr, done.stderr
    server.terminate()
    assert "run as plain Python (the C module was not built" in server.communicate(timeout=120)[1] and server.returncode == 0


@pytest.fixture(scope="module")
def backend():
    """tools/build_backend.py as pip loads it: by its path, in the tree's top folder."""
    before, folder = list(sys.path), os.getcwd()
    os.chdir(ROOT)
    sys.path.insert(0, "tools")
    yield importlib.import_module("build_backend")
    os.chdir(folder)
    sys.path[:] = before


@pytest.mark.parametrize(
    "machine, compiles, asked, wanted",
    [
        ("x86_64", False, "", True),
        ("aarch64", False, "", True),  # cffi has wheels there
        ("armv7l", False, "", False),
        ("riscv64", False, "", False),
        ("armv7l", True, "", True),
        ("armv7l", False, "1", True),
    ],
)
def test_the_build_asks_for_cffi_only_where_it_can_be_had(backend, monkeypatch, machine, compiles, asked, wanted):
    monkeypatch.setattr(backend.platform, "machine", lambda: machine)
    monkeypatch.setattr(backend, "compiles_cffi", lambda: compiles)
    monkeypatch.setenv("LEVERET_ACCEL", asked)
    for name in ("get_requires_for_build_wheel", "get_requires_for_build_editable"):
        monkeypatch.setattr(backend.build_meta, name, lambda settings: ["what setuptools wants"])  # this venv's setuptools may be another
    assert (backend.CFFI in backend.get_requires_for_build_wheel()) == wanted
    assert (backend.CFFI in backend.get_requires_for_build_editable()) == wanted


def test_a_compiler_alone_does_not_build_cffi(backend, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    assert not backend.compiles_cffi()
    monkeypatch.setenv("CC", "true")  # a compiler that takes everything
    assert backend.compiles_cffi()


def test_cffi_is_demanded_on_the_machines_that_it_has_wheels_for_and_by_the_extra(backend, wheel):
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(next(name for name in archive.namelist() if name.endswith("METADATA"))).decode()
    needs = [Requirement(line.split(": ", 1)[1]) for line in text.split("\n") if line.startswith("Requires-Dist: cffi")]
    for machine in (*backend.WITH_WHEELS, "armv7l", "armv6l", "riscv64"):
        for extra in ("", "accel"):
            about = {"platform_machine": machine, "implementation_name": "cpython", "extra": extra}
            assert any(need.marker.evaluate(about) for need in needs) == (machine in backend.WITH_WHEELS or extra == "accel"), machine


def test_without_cffi_the_package_is_built_without_c_and_says_what_brings_it(tmp_path):
    """What happens on 32-bit ARM: setuptools is there, cffi is not."""
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    python = str(venv / "bin" / "python")
    subprocess.run([python, "-m", "pip", "-q", "install", "setuptools==80.10.2", "wheel"], check=True, capture_output=True)
    source = tmp_path / "source"
    subprocess.run(
        [
            "cp",
            "-r",
            *[os.path.join(ROOT, name) for name in (*FOLDERS, "pyproject.toml", "README.md", "LICENSE")],
            str(source.mkdir() or source),
        ],
        check=True,
    )
    subprocess.run([python, "-m", "pip", "-q", "install", "--no-build-isolation", "--no-deps", str(source)], check=True)
    ask = "from leveret import c_accel; print(c_accel.install())"
    told = subprocess.run([python, "-c", ask], cwd=tmp_path, capture_output=True, text=True)
    assert "run as plain Python (the C module was not built" in told.stdout, told


def test_a_c_module_without_cffi_is_told_as_what_it_is(wheel, tmp_path):
    leveret = installed(wheel, tmp_path)
    ask = "from leveret import c_accel; print(c_accel.install())"
    done = subprocess.run([os.path.join(os.path.dirname(leveret), "python"), "-c", ask], cwd=tmp_path, capture_output=True, text=True)
    assert "the C module needs cffi, which is not here: pip install 'leveret[accel]'" in done.stdout, done


def test_the_wheel_holds_the_sources_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if ".dist-info/" not in name]
    assert len(c_modules(names)) == 2
    names = [name for name in names if name not in c_modules(names)]
    page = {name for name in names if name.startswith("leveret/ports/http/page_files/")}
    assert {name.rpartition("/")[2] for name in page} == {"index.html", "page.js", "views.js", "page.css"}
    names = [name for name in names if name not in page]
    assert all(name.startswith(tuple(FOLDERS.values())) and name.endswith((".py", ".pyi", "/board.toml")) for name in names), names
    assert "leveret/__init__.py" not in names and not [name for name in names if "devtool" in name]
    for folder, package in FOLDERS.items():
        expected = {package + "/" + name for name in os.listdir(os.path.join(ROOT, folder)) if name.endswith(".py")}
        assert expected <= set(names), expected - set(names)
    assert "leveret/core/amqp_0_9/frame.py" in names


def test_the_wheel_says_apache_2_and_carries_the_text(wheel):
    with zipfile.ZipFile(wheel) as archive:
        metadata = next(name for name in archive.namelist() if name.endswith("METADATA"))
        assert "License-Expression: Apache-2.0" in archive.read(metadata).decode()
        text = next(name for name in archive.namelist() if name.endswith("LICENSE"))
        assert "Apache License" in archive.read(text).decode()


def test_the_command_works_from_the_wheel_alone(wheel, tmp_path):
    leveret = installed(wheel, tmp_path)
    done = subprocess.run([leveret, "--version"], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout == "leveret 0.1.0\n", done.stderr
    done = subprocess.run([leveret, "serve", "--data", "x", "--sync", "never"], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 2 and "--sync" in done.stderr, done.stderr


def test_every_c_file_is_built_and_every_header_goes_into_the_source_package():
    """A header that no module depends on is not in the sdist, and a wheel made of that (cibuildwheel) would be without C."""
    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        modules = tomllib.load(file)["tool"]["setuptools"]["ext-modules"]
    named = {name for module in modules for name in module["sources"] + module["depends"]}
    files = {"c_accel/" + name for name in os.listdir(os.path.join(ROOT, "c_accel")) if name.endswith((".c", ".h"))}
    assert files == {name for name in named if not name.startswith("build/")}


def test_a_module_built_from_other_sources_is_not_used(monkeypatch):
    """After a pull without set-up: the plain form, and a sentence."""
    import importlib

    from leveret import c_accel
    from leveret.c_accel import sources

    if c_accel.lib is None:
        pytest.fail("the C module is not there")
    monkeypatch.setattr(sources, "fingerprint", lambda: 1)
    try:
        importlib.reload(c_accel)
        assert c_accel.lib is None and "built from other sources" in c_accel.install()
    finally:
        monkeypatch.undo()
        importlib.reload(c_accel)
    assert c_accel.lib is not None


STALE = (
    "import importlib, sys; from leveret import c_accel; c_accel.sources.fingerprint = lambda: 1; importlib.reload(c_accel); "
    "from leveret.tools import cli; sys.exit(cli.main(sys.argv[1:]))"
)


def test_a_module_built_from_other_sources_is_told_by_each_command_that_would_use_it():
    """It is neither used nor replaced in silence."""
    why = "the C module was built from other sources: python3 tools/dev.py setup makes it anew"
    environment = {name: value for name, value in os.environ.items() if name != "LEVERET_ACCEL"}
    doctor = subprocess.run([sys.executable, "-c", STALE, "doctor"], capture_output=True, text=True, env=environment)
    assert doctor.returncode == 1 and [line for line in doctor.stdout.splitlines() if line.startswith("wrong") and why in line], doctor
    perf = subprocess.run([sys.executable, "-c", STALE, "perf", "amqp://127.0.0.1:1"], capture_output=True, text=True, env=environment)
    assert perf.returncode == 2 and why in perf.stderr, perf
    command = [sys.executable, "-c", STALE, "serve", "--listen", "amqp://127.0.0.1:0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert server.stdout.readline()
        server.terminate()
        assert "WARNING this broker could be faster: " + why in server.communicate(timeout=120)[1]
    finally:
        server.kill()
        server.wait()
