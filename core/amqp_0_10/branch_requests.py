"""Management requests about branches of distributed transactions, for operators whose transaction manager does not come back. They are
among those of core/management/requests.py from a broker's first branch on.

    branches                                    all of them: xid, state, user, counts
    decide-branch {"xid", "outcome"}            a heuristic decision, "commit" or "rollback", about a prepared one; "rollback" of an
                                                active one (administrator)

An xid is format:global id:branch id, the ids in hexadecimal digits.
"""

from ..errors import RESOURCE_ERROR, ProtocolError
from ..parts import part
from ..shim import json_text

WORDS = {0: "", 4: "committed", 5: "rolled back", 6: "committed in part"}  # xa-status of a decided branch


def xid_text(xid):
    """An xid as a text."""
    return "%d:%s:%s" % (xid[0], xid[1].hex(), xid[2].hex())


def xid_of(text):
    """An xid out of its text. Raises ValueError."""
    parts = text.split(":") if isinstance(text, str) else []
    try:
        return int(parts[0]), bytes.fromhex(parts[1]), bytes.fromhex(parts[2])
    except (IndexError, ValueError):
        raise ValueError("an xid is format:global id:branch id, as the request branches tells it") from None


def all_of(broker):
    """The Branches of a broker, or None."""
    return None if broker.beyond is None else broker.beyond.branches


def tell(broker, request):
    """The branches, as many as an answer has room for."""
    there, rows = all_of(broker), []
    room = broker.limits.management_size_max - 256
    for branch in [] if there is None else list(there.by_xid.values()):
        row = {"xid": xid_text(branch.xid), "state": branch.state, "outcome": WORDS.get(branch.outcome, ""), "user": branch.user.name}
        row["published"], row["consumed"] = there.counts(branch)
        room -= len(json_text(row)) + 2
        if room < 0:
            break
        rows.append(row)
    return json_text({"ok": True, "branches": rows})


def decide(broker, request):
    """A heuristic decision."""
    there, xid, outcome = all_of(broker), xid_of(request.get("xid")), request.get("outcome")
    if outcome not in ("commit", "rollback"):
        raise ValueError("the outcome of a branch is commit or rollback")
    if there is None or not there.by_heuristics(request["user"], xid, outcome == "commit"):
        raise ProtocolError(RESOURCE_ERROR, "there is no room for what the branch publishes, or no branch: ask again")
    return json_text({"ok": True})


def served():
    """The requests beside those of core/management/requests.py, where this build has management."""
    requests = part("management.requests")
    if requests is None:
        return {}
    return {
        "branches": (tell, requests.READERS, requests.NOTHING),
        "decide-branch": (decide, requests.ADMINISTRATORS, requests.CHANGES),
    }
