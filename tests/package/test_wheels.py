"""`dev.py package wheel` and `sdist`: each wheel serves messages with C on the processor of its name (qemu-user)."""

import os
import subprocess
import sys
import zipfile

import pytest
from conftest import SECONDS, checked, need

from leveret.ports.client import connect
from leveret.tools.devtool import package_wheel
from leveret.tools.devtool.package_source import PackagingFailed

# Processor of the wheel: (Debian's name of the system that it runs on here, the emulator).
SYSTEMS = {"aarch64": ("arm64", "qemu-aarch64"), "armv7l": ("armhf", "qemu-arm"), "armv6l": ("armhf", "qemu-arm")}
TAGS = {
    "x86_64": "cp311-abi3-manylinux_2_17_x86_64",
    "aarch64": "cp311-abi3-manylinux_2_17_aarch64",
    "armv7l": "cp311-abi3-manylinux_2_17_armv7l",
    "armv6l": "cp311-abi3-linux_armv6l",
}
ASK = "from leveret import c_accel; print(c_accel.install())"


def serves(python, folder):
    """Run a broker from `folder` by `python`, and pass a message through it; what it said on standard error."""
    environment = {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/bin:/bin"}
    command = [*python, "-m", "leveret.tools.cli", "serve", "--listen", "amqp://127.0.0.1:0"]
    broker = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=folder)
    try:
        client = connect(broker.stdout.readline().split()[1], 120000)
        client.queue_declare("q")
        client.publish("", "q", b"over another processor")
        assert client.get("q").body == b"over another processor"
        client.close()
        broker.terminate()
        told = broker.communicate(timeout=SECONDS)[1]
        assert broker.returncode == 0, told
        return told
    finally:
        broker.kill()
        broker.communicate()


@pytest.mark.parametrize("processor", tuple(TAGS))
def test_a_wheel_serves_with_c_on_its_processor(processor, made, systems, tmp_path):
    python = [sys.executable]
    if processor in SYSTEMS:
        architecture, emulator = SYSTEMS[processor]
        need(emulator, package_wheel.TARGETS[processor].compilers[0])
        root = systems(architecture)
        python = [emulator, "-L", root, os.path.join(root, "usr/bin/python3.11")]
    wheel = made("wheel", processor)
    assert os.path.basename(wheel) == f"leveret-0.1.0-{TAGS[processor]}.whl"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
        assert f"Tag: {TAGS[processor]}" in archive.read("leveret-0.1.0.dist-info/WHEEL").decode()
    assert "the hot functions run in C" in checked([*python, "-c", ASK], cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)})
    assert "run in C" in serves(python, str(tmp_path))


def test_a_wheel_without_its_c_or_for_another_processor_is_not_made(made, tmp_path):
    wheel = made("wheel", "x86_64")
    with pytest.raises(PackagingFailed, match="is not for AArch64"):
        package_wheel.check(wheel, package_wheel.TARGETS["aarch64"], tmp_path)
    without = tmp_path / "without.whl"
    zipfile.ZipFile(without, "w").close()
    with pytest.raises(PackagingFailed, match="_hot.abi3.so could not be built"):
        package_wheel.check(without, package_wheel.TARGETS["x86_64"], tmp_path)


def test_a_missing_compiler_is_a_sentence_with_what_brings_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PackagingFailed, match="sudo apt-get install -y gcc-12-aarch64-linux-gnu"):
        package_wheel.compiler_of(package_wheel.TARGETS["aarch64"])


def test_the_sdist_installs_without_compiler_and_without_cffi_and_serves(made, tmp_path):
    sdist = made("sdist")
    checked([sys.executable, "-m", "venv", str(tmp_path / "venv")])
    python = str(tmp_path / "venv" / "bin" / "python")
    checked([python, "-m", "pip", "-q", "install", "setuptools==80.10.2"])
    install = [python, "-m", "pip", "-q", "install", "--no-build-isolation", "--no-deps", sdist]
    checked(install, env=dict(os.environ, CC="no-such-compiler"))
    assert "run as plain Python" in checked([python, "-c", ASK], cwd=tmp_path)
    assert "run as plain Python" in serves([python], str(tmp_path))
