"""`dev.py package`: what others install, made in `dist/` and of this working copy. Nothing of it is committed.

    python3 tools/dev.py package wheel [PROCESSOR ...]     dist/leveret-*.whl, with the hot path in C (package_wheel.py)
    python3 tools/dev.py package sdist                     dist/leveret-*.tar.gz
    python3 tools/dev.py package deb [ARCHITECTURE ...]    dist/leveret_*.deb (package_deb.py)
    python3 tools/dev.py package sbom                      dist/leveret-*.cdx.json, what it brings from PyPI (package_sbom.py)
    python3 tools/dev.py package oci [ARCHITECTURE ...]    dist/leveret-*-oci-*.tar, an image for containers (package_oci.py)

Laws: what is made has passed what can be said of it here (tags, symbols); a tool that is missing is one sentence with the line that
installs it, and exit status 2. The same commit makes the same octets: times are the commit's.
"""

import argparse
import os
import sys

from . import package_deb, package_oci, package_sbom, package_wheel
from .package_source import ROOT, PackagingFailed

DIST = os.path.join(ROOT, "dist")


def wheels(options):
    """Paths of the wheels made."""
    return [package_wheel.build(each, options.out) for each in options.processors or package_wheel.TARGETS]


def debs(options):
    """Paths of the Debian packages made."""
    return [package_deb.build(each, options.out) for each in options.architectures or package_deb.ARCHITECTURES]


def images(options):
    """Paths of the images made."""
    return [package_oci.build(each, options.out) for each in options.architectures or package_oci.ARCHITECTURES]


def make_parser():
    """The parser of `dev.py package`."""
    parser = argparse.ArgumentParser(prog="tools/dev.py package", description="Make what others install, in dist/.")
    kinds = parser.add_subparsers(dest="kind", required=True, metavar="KIND")
    wheel = kinds.add_parser("wheel", help="wheels with the hot path in C, for Linux: " + ", ".join(package_wheel.TARGETS))
    wheel.add_argument("processors", nargs="*", metavar="PROCESSOR", choices=[[], *package_wheel.TARGETS], help="only these")
    wheel.set_defaults(make=wheels)
    sdist = kinds.add_parser("sdist", help="the sources, for pip on any machine: it needs neither a compiler nor cffi")
    sdist.set_defaults(make=lambda options: [package_wheel.build_source(options.out)])
    sbom = kinds.add_parser("sbom", help="the bill of materials, CycloneDX, of an installation by pip")
    sbom.set_defaults(make=lambda options: [package_sbom.build(options.out)])
    deb = kinds.add_parser("deb", help="Debian packages: " + ", ".join(package_deb.ARCHITECTURES))
    deb.add_argument("architectures", nargs="*", metavar="ARCHITECTURE", choices=[[], *package_deb.ARCHITECTURES], help="only these")
    deb.set_defaults(make=debs)
    oci = kinds.add_parser("oci", help="images for containers: " + ", ".join(package_oci.ARCHITECTURES))
    oci.add_argument("architectures", nargs="*", metavar="ARCHITECTURE", choices=[[], *package_oci.ARCHITECTURES], help="only these")
    oci.set_defaults(make=images)
    for each in (wheel, sdist, sbom, deb, oci):
        each.add_argument("--out", default=DIST, metavar="DIR", help="where it goes (default: dist)")
    return parser


def main(arguments):
    """Make it; the exit status."""
    options = make_parser().parse_args(arguments)
    os.makedirs(options.out, exist_ok=True)
    try:
        for path in options.make(options):
            print(path)
    except PackagingFailed as error:
        print(f"tools/dev.py package: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
