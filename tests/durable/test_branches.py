"""A prepared branch of AMQP 0-10 (class dtx) over kill -9 of a real `leveret serve --data`: recover lists it for its manager, and so does
`leveret branches list`; an operator decides it from the command line, which the manager hears until it says forget.
"""

import subprocess
import sys

from leveret.core.amqp_0_10 import properties, structs
from leveret.core.amqp_0_10.branches import HEURCOM, HEURRB, OK
from leveret.ports.client import connect
from leveret.ports.client_0_10 import connect as connect_0_10

HEADER = structs.write(properties.DELIVERY, {"routing_key": "q", "delivery_mode": properties.PERSISTENT})
BODY = b"prepared"
XIDS = [{"format": 1, "global_id": b"global", "branch_id": b"b%d" % number} for number in range(2)]


def branches(broker, *arguments):
    """(exit status, output) of `leveret branches`."""
    action, *more = arguments
    command = [sys.executable, "-m", "leveret.tools.cli", "branches", action, "--of", broker.url, *more]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout


def prepare(manager, xid):
    """A message in a branch, which is prepared."""
    assert manager.do("dtx_start", xid=xid)["status"] == OK
    client = manager._client  # a transfer has a content, which `do` has not
    client.command("message_transfer", {"accept_mode": 1, "acquire_mode": 0}, HEADER, True)
    client.body(BODY, True)
    assert manager.do("dtx_end", xid=xid)["status"] == OK
    assert manager.do("dtx_prepare", xid=xid)["status"] == OK


def test_a_kill_keeps_prepared_branches_and_an_operator_decides_them(start, tmp_path):
    broker = start(tmp_path / "data")
    client = connect(broker.url)
    client.queue_declare("q", durable=True)
    client.close()
    manager = connect_0_10(broker.url)
    manager.do("dtx_select")
    for xid in XIDS:
        prepare(manager, xid)
    broker.process.kill()
    broker.process.wait()
    broker = start(tmp_path / "data")
    manager = connect_0_10(broker.url)
    manager.do("dtx_select")
    assert sorted(each["branch_id"] for each in manager.do("dtx_recover")["in_doubt"]) == [b"b0", b"b1"]
    status, listed = branches(broker, "list")
    lines = sorted(line.split("  ") for line in listed.splitlines())
    assert status == 0 and [line[1] for line in lines] == ["prepared, user guest, 1 to publish, 0 consumed"] * 2, listed
    (first, _), (second, _) = lines
    assert branches(broker, "commit", first) == (0, "") and branches(broker, "rollback", second) == (0, "")
    assert branches(broker, "commit", first)[0] == 1, "it is decided already"
    client = connect(broker.url)
    assert bytes(client.get("q", no_ack=True).body) == BODY and client.get("q") is None
    client.close()
    assert [manager.do("dtx_commit", xid=xid)["status"] for xid in XIDS] == [HEURCOM, HEURRB]
    for xid in XIDS:
        manager.do("dtx_forget", xid=xid)
    assert manager.do("dtx_recover")["in_doubt"] in (None, []) and branches(broker, "list") == (0, "")
    manager.close()
