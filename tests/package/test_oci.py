"""`dev.py package oci`: the image's digests are right, and unpacked it serves as its user on a root that nobody writes (runc)."""

import gzip
import hashlib
import json
import os
import subprocess
import tarfile
import time

import pytest
from conftest import SECONDS, checked, need

from leveret.tools.devtool import package_oci


@pytest.fixture(scope="module")
def unpacked(made, tmp_path_factory):
    """(the image's configuration, the folder of its layer)."""
    need("mmdebstrap")
    folder = tmp_path_factory.mktemp("oci")
    with tarfile.open(made("oci", "amd64")) as archive:
        archive.extractall(folder / "image", filter="fully_trusted")

    def blob(descriptor):
        octets = (folder / "image" / "blobs" / "sha256" / descriptor["digest"].removeprefix("sha256:")).read_bytes()
        assert "sha256:" + hashlib.sha256(octets).hexdigest() == descriptor["digest"] and len(octets) == descriptor["size"]
        return octets

    (named,) = json.loads((folder / "image" / "index.json").read_text())["manifests"]
    manifest = json.loads(blob(named))
    about = json.loads(blob(manifest["config"]))
    (layer,) = manifest["layers"]
    tar = gzip.decompress(blob(layer))
    assert about["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(tar).hexdigest()]
    (folder / "layer.tar").write_bytes(tar)
    (folder / "rootfs").mkdir()
    with tarfile.open(folder / "layer.tar") as archive:
        archive.extractall(folder / "rootfs", filter="fully_trusted")
    return about, folder


def test_only_the_volume_is_the_users_and_nothing_has_more_rights_than_who_runs_it(unpacked):
    about, folder = unpacked
    assert about["config"]["User"] == "65532:65532" and list(about["config"]["Volumes"]) == ["/var/lib/leveret"]
    with tarfile.open(folder / "layer.tar") as archive:
        owned = {member.name for member in archive if (member.uid, member.gid) != (0, 0)}
    assert owned == {"./var/lib/leveret"}


def test_it_serves_as_its_user_on_a_root_that_nobody_writes(unpacked):
    need("runc")
    about, folder = unpacked
    if os.getuid():
        pytest.skip("runc wants root here")
    checked(["runc", "spec"], cwd=folder)
    spec = json.loads((folder / "config.json").read_text())
    run = about["config"]
    spec["process"].update(args=run["Entrypoint"] + run["Cmd"], env=run["Env"], terminal=False)
    spec["process"]["user"] = {"uid": package_oci.USER, "gid": package_oci.USER}
    spec["root"] = {"path": "rootfs", "readonly": True}
    volume = folder / "volume"
    volume.mkdir()
    os.chown(volume, package_oci.USER, package_oci.USER)
    spec["mounts"].append({"destination": "/var/lib/leveret", "type": "bind", "source": str(volume), "options": ["bind", "rw"]})
    (folder / "config.json").write_text(json.dumps(spec))
    name = f"leveret-test-{os.getpid()}"
    broker = subprocess.Popen(["runc", "run", name], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert broker.stdout.readline().startswith("ready amqp://0.0.0.0:5672"), broker.stderr.read()
        limit = time.monotonic() + SECONDS
        while subprocess.run(["runc", "exec", name, *run["Healthcheck"]["Test"][1:]], capture_output=True).returncode:
            assert time.monotonic() < limit
        subprocess.run(["runc", "kill", name, "TERM"], check=True)
        assert "run in C" in broker.communicate(timeout=SECONDS)[1] and broker.returncode == 0
        assert os.listdir(volume), "its log is in the volume"
    finally:
        subprocess.run(["runc", "delete", "--force", name], capture_output=True)
        broker.kill()
        broker.communicate()
