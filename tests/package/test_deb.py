"""`dev.py package deb`: installed, upgraded, removed, purged in a system of its own (mmdebstrap); its unit's score; its configuration."""

import json
import os
import re
import shutil
import subprocess
import tomllib

import pytest
from conftest import DEBIAN, SECONDS, checked, need

from leveret.tools import cli
from leveret.tools.devtool import package_config, package_deb


def test_the_configuration_explains_every_setting_and_serves_as_it_stands_and_with_its_defaults(tmp_path):
    text = package_config.text()
    assert tomllib.loads(text) == {"data": {"directory": "/var/lib/leveret"}, "limits": {}}
    path = tmp_path / "leveret.toml"
    for each in (text, re.sub(r"^#(?=[a-z_]+ = .)", "", text[: text.index("#[[user]]")], flags=re.MULTILINE)):
        each = each.replace('anonymous = ""\n', "").replace("/var/lib/leveret", str(tmp_path))
        path.write_text(each)
        assert cli.main(["serve", "--config", str(path), "--memory-max", "2G", "--check-config"]) == 0
    for row in (*package_config.config.FILE.rows, *package_config.config.USER.rows, *package_config.config.LIMITS.rows):
        if row[0] not in package_config.TABLES:
            assert re.search(rf"^# .*\n#{re.escape(row[0])} =", text, re.MULTILINE), row[0]


def test_the_unit_scores_below_3(tmp_path):
    need("systemd-analyze")
    unit = tmp_path / "leveret.service"
    unit.write_text(package_deb.read("leveret.service"))
    told = checked(["systemd-analyze", "security", "--offline=true", "--json=short", "--no-pager", str(unit)])
    assert json.loads(told)
    plain = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager", str(unit)], capture_output=True, text=True)
    assert float(re.search(r"exposure level for leveret.service: ([\d.]+)", plain.stdout)[1]) < 3


def test_lintian_has_nothing_to_say(made):
    need("lintian")
    assert checked(["lintian", "--allow-root", "--fail-on", "error,warning", made("deb", "amd64")]).strip() == ""


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    """The folder of a small Debian, set up."""
    need("mmdebstrap")
    if os.getuid():
        pytest.skip("mmdebstrap wants root here")
    folder = str(tmp_path_factory.mktemp("system") / "root")
    include = "--include=python3,python3-cffi-backend,python3-serial,adduser,init-system-helpers"
    checked(["mmdebstrap", "--variant=apt", include, "--quiet", "bookworm", folder, DEBIAN])
    return folder


def test_install_upgrade_remove_and_purge(made, system, tmp_path):
    def inside(*words, status=0):
        done = subprocess.run(["chroot", system, *words], capture_output=True, text=True, timeout=SECONDS)
        assert done.returncode == status, (words, done.stdout[-2000:], done.stderr[-2000:])
        return done.stdout

    def install(path):
        shutil.copy(path, os.path.join(system, "leveret.deb"))
        inside("apt-get", "install", "-y", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confold", "/leveret.deb")

    configuration = os.path.join(system, "etc/leveret/leveret.toml")
    install(made("deb", "amd64"))
    assert inside("leveret", "--version") == "leveret 0.1.0\n"
    assert inside("stat", "-c", "%U %G %a", "/etc/leveret/leveret.toml") == "root leveret 640\n"
    assert "run in C" in inside(
        "python3", "-c", "import sys; sys.path.insert(0, '/usr/lib/leveret')\nfrom leveret import c_accel; print(c_accel.install())"
    )
    inside("runuser", "-u", "leveret", "--", "leveret", "serve", "--config", "/etc/leveret/leveret.toml", "--check-config")
    os.makedirs(os.path.join(system, "var/lib/leveret"), exist_ok=True)
    with open(configuration, "a") as file:
        file.write("# mine\n")
    install(package_deb.build("amd64", str(tmp_path), "0.1.1", made("wheel", "x86_64")))
    assert "0.1.1" in inside("dpkg-query", "-W", "leveret")
    assert open(configuration).read().endswith("# mine\n") and os.stat(configuration).st_mode & 0o777 == 0o640
    inside("apt-get", "remove", "-y", "leveret")
    assert os.path.isdir(os.path.join(system, "var/lib/leveret")) and os.path.exists(configuration)
    assert not os.path.exists(os.path.join(system, "usr/lib/leveret")), "py3clean has taken what py3compile made"
    inside("apt-get", "purge", "-y", "leveret")
    assert not os.path.exists(os.path.join(system, "var/lib/leveret")) and not os.path.exists(configuration)
    inside("getent", "passwd", "leveret")
