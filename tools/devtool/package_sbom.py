"""`dev.py package sbom`: the bill of materials of an installation by pip, as CycloneDX: what the lock files of GROUPS name (locks.py).

The Debian package and the image for containers take Debian's packages instead; `dpkg-query -W` in them says which.
"""

import os
import sys
import tempfile

from leveret.core.version import VERSION

from . import locks
from .package_source import ROOT, run

GROUPS = (locks.CORE, "web", "flash", "demo")  # what an installed `leveret` can have; spark is of the computer that reads


def build(out):
    """The path of the bill. Raises PackagingFailed."""
    path = os.path.join(out, f"leveret-{VERSION}.cdx.json")
    with tempfile.TemporaryDirectory(prefix="leveret-sbom-") as folder:
        together = os.path.join(folder, "requirements.txt")
        with open(together, "w", encoding="utf-8") as file:
            for group in GROUPS:
                with open(locks.path_of(group), encoding="utf-8") as lock:
                    file.write(lock.read() + "\n")
        command = [sys.executable, "-m", "cyclonedx_py", "requirements", together, "--pyproject", os.path.join(ROOT, "pyproject.toml")]
        run([*command, "--mc-type", "application", "--output-reproducible", "--validate", "--output-file", path])
    return path
