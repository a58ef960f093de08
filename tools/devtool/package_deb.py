"""`dev.py package deb`: the Debian package of one processor, made of its wheel by dpkg-deb.

    /usr/bin/leveret  /usr/lib/leveret  /etc/leveret/leveret.toml  /lib/systemd/system/leveret.service  man pages, completions, pages

Laws: dependencies are Debian's own packages, nothing comes from PyPI; what belongs to dpkg is read only for the broker, whose own
directory systemd makes. The files beside control are in the folder debian/.
"""

import gzip
import hashlib
import os
import shutil
import tempfile
import time
import zipfile

from leveret.core.version import VERSION

from .. import command_tree, completion, manual
from . import package_config, package_wheel, pages
from .package_source import ROOT, PackagingFailed, commit_time, run

ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64", "armhf": "armv7l"}
FOLDER = os.path.join(ROOT, "tools", "devtool", "debian")
SCRIPTS = ("postinst", "prerm", "postrm")
LAUNCHER = """#!/usr/bin/python3
import sys

sys.path.insert(0, "/usr/lib/leveret")
from leveret.tools.cli import main

sys.exit(main())
"""
COPYRIGHT = """Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: leveret

Files: *
Copyright: 2025-2026 The Leveret developers
License: Apache-2.0
 On Debian systems the text of the Apache License 2.0 is in /usr/share/common-licenses/Apache-2.0.
"""
CHANGELOG = """leveret ({version}) unstable; urgency=medium

  * What changes is in CHANGELOG.md beside this file.

 -- The Leveret developers <maintainers@leveret.invalid>  {date}
"""
COMPLETIONS = {
    "bash": "usr/share/bash-completion/completions/leveret",
    "zsh": "usr/share/zsh/vendor-completions/_leveret",
    "fish": "usr/share/fish/vendor_completions.d/leveret.fish",
}


def write(root, path, text, mode=0o644):
    """Write a file of the package, text or octets."""
    path = os.path.join(root, path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    os.chmod(path, mode)


def packed(text):
    """A text as Debian keeps pages: gzip without a time."""
    return gzip.compress(text.encode(), 9, mtime=0)


def write_files(root, wheel, version):
    """What the package installs."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(os.path.join(root, "usr/lib/leveret"))
    write(root, "usr/bin/leveret", LAUNCHER, 0o755)
    write(root, "etc/leveret/leveret.toml", package_config.text(), 0o640)
    write(root, "lib/systemd/system/leveret.service", read("leveret.service"))
    write(root, "usr/share/lintian/overrides/leveret", read("lintian-overrides"))
    for name, text in manual.pages().items():
        write(root, f"usr/share/man/man1/{name}.gz", packed(text))
    for shell, path in COMPLETIONS.items():
        write(root, path, completion.script(shell, command_tree.read()))
    for name in pages.names():
        if not name.startswith("tests"):
            write(root, f"usr/share/doc/leveret/{name}", pages.read(name))
    write(root, "usr/share/doc/leveret/copyright", COPYRIGHT)
    date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(commit_time()))
    write(root, "usr/share/doc/leveret/changelog.gz", packed(CHANGELOG.format(version=version, date=date)))


def read(name):
    """A file of debian/."""
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return file.read()


def write_control(root, architecture, version):
    """The folder DEBIAN."""
    files = sorted(os.path.join(at, name) for at, _, names in os.walk(root) for name in names)
    sums, size = "", 0
    for path in files:
        with open(path, "rb") as file:
            octets = file.read()
        size += len(octets) // 1024 + 1
        if not path.startswith(os.path.join(root, "etc")):
            sums += f"{hashlib.md5(octets, usedforsecurity=False).hexdigest()}  {os.path.relpath(path, root)}\n"
    control = read("control").replace("@VERSION@", version).replace("@ARCHITECTURE@", architecture).replace("@SIZE@", str(size))
    write(root, "DEBIAN/control", control)
    write(root, "DEBIAN/md5sums", sums)
    write(root, "DEBIAN/conffiles", "/etc/leveret/leveret.toml\n")
    for name in SCRIPTS:
        write(root, "DEBIAN/" + name, read(name), 0o755)


def build(architecture, out, version=VERSION, wheel=None):
    """The path of the package. `wheel`: the path of its wheel, if that is made already. Raises PackagingFailed."""
    if not shutil.which("dpkg-deb"):
        raise PackagingFailed("dpkg-deb is missing; it is part of Debian's package dpkg")
    path = os.path.join(out, f"leveret_{version}_{architecture}.deb")
    with tempfile.TemporaryDirectory(prefix="leveret-deb-") as folder:
        root = os.path.join(folder, "root")
        os.mkdir(root, 0o755)
        write_files(root, wheel or package_wheel.build(ARCHITECTURES[architecture], folder), version)
        write_control(root, architecture, version)
        run(["chmod", "-R", "u+rwX,go-w,a+rX", os.path.join(root, "usr"), os.path.join(root, "etc"), os.path.join(root, "lib")])
        os.chmod(os.path.join(root, "etc/leveret/leveret.toml"), 0o640)
        given = dict(os.environ, SOURCE_DATE_EPOCH=str(commit_time()))
        run(["dpkg-deb", "--root-owner-group", "-Zxz", "-z6", "--build", root, path], env=given)
    return path
