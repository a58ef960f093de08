"""Lock files and vulnerabilities: tools/devtool/locks.py, audit.py."""

import json
import re

from leveret.tools.devtool import audit, locks


def test_every_package_of_every_lock_file_has_hashes():
    for group in locks.groups():
        with open(locks.path_of(group), encoding="utf-8") as file:
            text = re.sub(r"(?m)^ *#.*\n", "", file.read())
        for entry in re.split(r"\n(?=\S)", text.strip()):
            name, *hashes = re.split(r" \\\n +", entry)
            assert locks.PIN.match(name) and hashes, (group, name)
            assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each) for each in hashes), (group, name)


def test_a_version_that_pyproject_toml_has_and_no_lock_file_is_a_fault(monkeypatch, tmp_path):
    assert list(locks.faults()) == []
    asked = locks.groups()
    monkeypatch.setattr(locks, "groups", lambda: {**asked, "web": ["h11==0.99.0", "wsproto==1.3.2"], "new": ["a==1"]})
    told = list(locks.faults())
    assert told == [
        "locks/web.txt has h11 0.16.0, pyproject.toml 0.99.0; run: python3 tools/dev.py lock",
        "there is no tools/devtool/locks/new.txt; run: python3 tools/dev.py lock",
    ]
    monkeypatch.setattr(locks, "groups", lambda: {name: asked[name] for name in asked if name != "web"})
    assert list(locks.faults()) == ["locks/web.txt belongs to no extra of pyproject.toml: delete it"]


def test_the_same_package_has_the_same_versions_in_all_lock_files():
    """Several in one where a version is not for every Python."""
    versions: dict = {}
    for group in locks.groups():
        for name, there in locks.pins(group).items():
            assert versions.setdefault(name, there) == there, (group, name)
    assert [name for name in versions if len(versions[name]) > 1] == ["contourpy"], "two versions, because of two Pythons"


def test_what_pip_audit_says():
    """A vulnerability is a sentence; what was not looked at is not told as free of any."""
    clean, bad = {"name": "a", "version": "1", "vulns": []}, {"id": "PYSEC-1", "fix_versions": ["2", "3"]}
    skipped = {"name": "b", "skip_reason": "Dependency not found on PyPI and could not be audited: b (1)"}
    cases = (
        ([clean], [], ""),
        ([clean, skipped], [], ""),
        ([skipped], [], "the index that pip uses here tells of none (%s)" % skipped["skip_reason"]),
        ([{"name": "a", "version": "1", "vulns": [bad]}], ["a 1: PYSEC-1, mended in 2, 3"], ""),
        ([{"name": "a", "version": "1", "vulns": [dict(bad, fix_versions=[])]}], ["a 1: PYSEC-1, mended in no version yet"], ""),
    )
    for rows, known, unasked in cases:
        assert audit.judged(json.dumps({"dependencies": rows}), "") == (known, unasked)
    assert audit.judged("", "Traceback\nConnectionError: no way to the index\n") == ([], "ConnectionError: no way to the index")
