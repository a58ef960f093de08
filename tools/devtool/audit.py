"""Known vulnerabilities of what the lock files name, by pip-audit, for `dev.py check`. It asks PyPI's JSON API, which a mirror may lack."""

import json
import subprocess
import sys

from . import locks

TIMEOUT_S = 10  # of one request


def audited():
    """(sentences about vulnerabilities, why nothing was looked at or "")."""
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "--progress-spinner", "off", "--format", "json"]
    command += ["--timeout", str(TIMEOUT_S)]
    for group in locks.groups():
        command += ["--requirement", locks.path_of(group)]
    done = subprocess.run(command, capture_output=True, text=True)
    return judged(done.stdout, done.stderr)


def judged(output, complaint):
    """The same of what pip-audit has written to its standard output and error."""
    try:
        rows = json.loads(output)["dependencies"]
    except ValueError:
        said = complaint.strip().splitlines()
        return [], said[-1][:300] if said else "pip-audit said nothing"
    skipped = [row["skip_reason"] for row in rows if "skip_reason" in row]
    if len(skipped) == len(rows):
        return [], f"the index that pip uses here tells of none ({skipped[0] if skipped else 'no package'})"
    return [
        f"{row['name']} {row['version']}: {each['id']}, mended in {', '.join(each['fix_versions']) or 'no version yet'}"
        for row in rows
        for each in row.get("vulns", ())
    ], ""
