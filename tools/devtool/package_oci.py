"""`dev.py package oci`: an image of the OCI's specification (image-spec 1.0), made without a daemon: Debian's packages, unpacked by
mmdebstrap, and the wheel in one layer, with the JSON files beside it, in a tar file that `podman load` and `skopeo copy oci-archive:` take.

Laws: the broker runs as user 65532, which owns nothing but the volume /var/lib/leveret; nothing else is written, so the root may be
read only. The health check is a field of Docker's in the configuration (the OCI has none): `leveret alive`.
"""

import gzip
import hashlib
import io
import json
import os
import tarfile
import tempfile
import time
import zipfile

from leveret.core.version import VERSION

from . import package_config, package_deb, package_wheel
from .package_source import commit_time, run

ARCHITECTURES = {"amd64": "x86_64", "arm64": "aarch64"}
USER = 65532
DATA = "var/lib/leveret"
PACKAGES = "python3-minimal,libpython3-stdlib,python3-cffi-backend,python3-serial,python3-h11,python3-wsproto,ca-certificates"
LAYER, MANIFEST, CONFIG = (f"application/vnd.oci.image.{kind}" for kind in ("layer.v1.tar+gzip", "manifest.v1+json", "config.v1+json"))
ENTRY = ["/usr/bin/leveret"]
COMMAND = ["serve", "--config", "/etc/leveret/leveret.toml", "--listen", "amqp://0.0.0.0:5672"]
HEALTH = {"Test": ["CMD", "/usr/bin/leveret", "alive"], "Interval": 30 * 10**9, "Timeout": 10 * 10**9, "Retries": 3}


def write_root(root, architecture, wheel):
    """The image's files."""
    options = ["--variant=extract", f"--architectures={architecture}", f"--include={PACKAGES}", "--quiet"]
    run(["mmdebstrap", *options, "bookworm", root, "http://deb.debian.org/debian"])
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(os.path.join(root, "usr/lib/leveret"))
    package_deb.write(root, "usr/bin/leveret", package_deb.LAUNCHER, 0o755)
    package_deb.write(root, "etc/leveret/leveret.toml", package_config.text())
    package_deb.write(root, "etc/passwd", f"root:x:0:0:root:/:/bin/false\nleveret:x:{USER}:{USER}:leveret:/{DATA}:/bin/false\n")
    package_deb.write(root, "etc/group", f"root:x:0:\nleveret:x:{USER}:\n")
    os.makedirs(os.path.join(root, DATA))
    os.chmod(os.path.join(root, DATA), 0o700)


def layer(root):
    """The tar file of a folder, in an order and with times that do not change."""

    def owned(member):
        member.uid = member.gid = USER if member.name == "./" + DATA else 0
        member.uname = member.gname = ""
        member.mtime = since
        return member

    since = commit_time()
    octets = io.BytesIO()
    with tarfile.open(fileobj=octets, mode="w", format=tarfile.PAX_FORMAT) as archive:
        archive.add(root, ".", filter=owned)
    return octets.getvalue()


def described(kind, octets, files):
    """The descriptor of a blob, which is put among the files."""
    digest = hashlib.sha256(octets).hexdigest()
    files["blobs/sha256/" + digest] = octets
    return {"mediaType": kind, "digest": "sha256:" + digest, "size": len(octets)}


def as_json(value):
    """Octets of a JSON file, the same each time."""
    return json.dumps(value, sort_keys=True, indent=1).encode()


def image(tar, architecture):
    """{path: octets} of the image's layout (image-spec, image-layout.md)."""
    files = {"oci-layout": as_json({"imageLayoutVersion": "1.0.0"})}
    runs = {
        "User": f"{USER}:{USER}",
        "Entrypoint": ENTRY,
        "Cmd": COMMAND,
        "Env": ["PATH=/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE=1"],
        "ExposedPorts": {"5672/tcp": {}},
        "Volumes": {"/" + DATA: {}},
        "StopSignal": "SIGTERM",
        "Healthcheck": HEALTH,
    }
    about = {
        "architecture": architecture,
        "os": "linux",
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(commit_time())),
        "config": runs,
        "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(tar).hexdigest()]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": described(CONFIG, as_json(about), files),
        "layers": [described(LAYER, gzip.compress(tar, 6, mtime=0), files)],
    }
    named = described(MANIFEST, as_json(manifest), files)
    named["annotations"] = {"org.opencontainers.image.ref.name": f"leveret:{VERSION}"}
    files["index.json"] = as_json({"schemaVersion": 2, "manifests": [named]})
    return files


def build(architecture, out, wheel=None):
    """The path of the image. `wheel`: the path of its wheel, if that is made already. Raises PackagingFailed."""
    path = os.path.join(out, f"leveret-{VERSION}-oci-{architecture}.tar")
    with tempfile.TemporaryDirectory(prefix="leveret-oci-") as folder:
        root = os.path.join(folder, "root")
        write_root(root, architecture, wheel or package_wheel.build(ARCHITECTURES[architecture], folder))
        files = image(layer(root), architecture)
    with tarfile.open(path, "w") as archive:
        for name in sorted(files):
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(files[name]), commit_time()
            archive.addfile(member, io.BytesIO(files[name]))
    return path
