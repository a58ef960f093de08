"""The administrator: removes what attackers leave, every few seconds, and at the end looks whether the broker still holds anything."""

import signal
import time
import traceback

from peer import Attack, Gone, Over
from peer_0_10 import open_0_10

CLEAN_S = 8.0
LEFT_MAX = {"blocks": 8, "messages": 1, "entries": 1, "connections": 1, "channels": 1, "consumers": 1, "queues": 1}
LEAVE_S = 90  # until connections that have gone are noticed, and what they had sent is taken in turns


def housekeeper(state, events):
    """A process that removes, as an administrator, what attackers leave."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while state.stop.value == 0:
        ends = time.monotonic() + CLEAN_S
        while time.monotonic() < ends and state.stop.value == 0:
            time.sleep(0.1)
        events.put(("cleaned", time.monotonic(), clean(state)))


def clean(state):
    """Remove queues, exchanges, policies and users of attackers: how many, or a sentence."""
    attack = Attack(state.port, "housekeeper", 0, 30)
    attack.address = "127.0.0.1"
    count = 0
    try:
        root = attack.open(user="root")
        for kind in "qdefgtulascr":  # so that there is room for management's answers
            for number in range(40):
                root.do("queue.delete", queue=f"mallory.{kind}{number}", no_wait=True)
        for name in queues_of(root):
            if name.startswith("amq.gen"):
                root.call("queue.delete", queue=name)
                count += 1
        count += end_branches(attack, root)
        after = None
        while True:
            page = root.manage({"request": "definitions", "after": after})
            if not page or not page.get("ok"):
                return f"no definitions: {str(page)[:200]}"
            count += sum(remove(root, section, item) for section, items in page["items"].items() if section != "left_out" for item in items)
            after = page.get("next")
            if after is None:
                return count
    except (Gone, Over, TypeError):
        return f"cut off, or not answered, after {count}"
    except Exception:  # what it raised is the finding
        return traceback.format_exc()
    finally:
        attack.close()


def queues_of(root):
    """The names of all queues but the one for the answers; definitions leave out those that the broker has named."""
    names, after = [], None
    while True:
        page = root.manage({"request": "overview", "after": after})
        names += [item["name"] for section in ("queues", "streams") for item in page["items"].get(section, ())]
        after = page["next"]
        if after is None:
            return [name for name in names if not name.startswith("amq.rabbitmq.reply-to.")]


def end_branches(attack, root):
    """End branches of transactions that attackers have left: how many. What was prepared has to be forgotten too, over AMQP 0-10."""
    count = 0
    while True:
        rows = (root.manage({"request": "branches"}) or {}).get("branches", ())
        if not rows:
            return count
        count += len(rows)
        ender = open_0_10(attack, user="root")
        ender.command(0, "dtx.select")
        for row in rows:
            if row["state"] != "decided":
                root.manage({"request": "decide-branch", "xid": row["xid"], "outcome": "rollback"})
            if row["state"] != "active":
                ender.command(0, "dtx.forget", xid=tuple(bytes.fromhex(each) for each in row["xid"].split(":")[1:]))
        ender.command(0, "dtx.recover")
        ender.wait("execution.result")
        ender.close()


def remove(root, section, item):
    """True when something was removed."""
    name = item.get("name", "")
    if not name.startswith(("mallory", "amq.gen")):
        return False
    if section == "queues":
        root.do("queue.delete", queue=name, no_wait=True)
    elif section == "exchanges":
        root.do("exchange.delete", exchange=name, no_wait=True)
    elif section == "policies":
        root.manage({"request": "remove-policy", "name": name})
    elif section == "users" and "." in name:
        root.manage({"request": "remove-user", "name": name})
    else:
        return False
    return True


def look_for_leaks(port, found):
    """Every client has gone and every queue is deleted: only what the question itself takes may be in use. `found(text)` gets the rest."""
    attack = Attack(port, "leaks", 0, LEAVE_S + 60)
    try:
        root = attack.open(user="root")
        end_branches(attack, root)
        for name in queues_of(root) + ["leveret.poison"]:
            root.call("queue.delete", queue=name)
        more, limit = True, time.monotonic() + LEAVE_S
        while more and time.monotonic() < limit:
            page = root.manage({"request": "overview"})
            answer = page["overview"]
            used = {name: answer["memory"][name + "_used"] for name in ("blocks", "messages", "entries")}
            used.update({name: answer["totals"][name] for name in ("connections", "channels", "consumers", "queues")})
            used["queues"] -= "leveret.prepared" in str(page["items"].get("queues"))  # the broker's own, of branches that were prepared
            more = {name: used[name] for name in used if used[name] > LEFT_MAX[name]}
            attack.pause(0.2)
        if more:
            items = str(page["items"])[-900:]
            found(f"in use when everybody has gone and all queues are deleted: {more} (at most {LEFT_MAX}): {items}")
    except (Gone, Over, TypeError, KeyError):
        found("nobody could look what is left: " + traceback.format_exc())
    finally:
        attack.close()
