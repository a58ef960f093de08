"""`dev.py package sbom`: a bill that CycloneDX's own validator takes, with every package of the lock files, its version and its hashes."""

import json

from leveret.tools.devtool import locks, package_sbom


def test_the_bill_names_all_that_an_installation_brings(made):
    with open(made("sbom"), encoding="utf-8") as file:
        bill = json.load(file)
    assert bill["bomFormat"] == "CycloneDX" and bill["metadata"]["component"]["name"] == "leveret"
    there = {(locks.name_of(each["name"]), each["version"]) for each in bill["components"]}
    assert there == {pin for group in package_sbom.GROUPS for name, versions in locks.pins(group).items() for pin in [(name, *versions)]}
    for each in bill["components"]:
        assert each["purl"].startswith("pkg:pypi/")
        assert [one["hashes"] for one in each["externalReferences"] if one.get("hashes")], each["name"]
