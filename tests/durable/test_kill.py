"""kill -9 of a real `leveret serve --data` under real clients, again and again on one directory: ledger.py says what must hold after each.

LEVERET_KILLS=200 is the long run (`KILLS` without it), LEVERET_KILL_SEED=N repeats one run's waits. A kill ends the process, not the
machine: what has been written stays without a sync. Cuts of the power are the simulator's (tests/simulate).
"""

import os
import random
import time

from broker_process import BrokerProcess
from ledger import Ledger
from workers import PikaConsumer, PikaPublisher, PikaTransactions, StreamReader, WindowPublisher, identity_of

from leveret.ports.client import connect

KILLS = int(os.environ.get("LEVERET_KILLS", "10"))
MODES = (("--sync", "each"), ("--sync", "batch", "--batch-ms", "20"), ("--sync", "none"))
SIZES = ("--segment-size", "64K", "--disk-max", "16M")
LIMITS = "[limits]\ncontent_size_max = 1048576\n"
PATIENCE_S = 60
SETTLE_S = 0.5  # after this without traffic all acks are written


def declare(broker):
    client = connect(broker.url)
    for name in ("work", "kept", "pairs"):
        client.queue_declare(name, durable=True)
    client.queue_declare("s", durable=True, arguments={"x-queue-type": "stream", "x-max-length-bytes": 500000})
    client.close()


def look(client, queue):
    """The identities in a queue, in order; they stay there."""
    count = client.queue_declare(queue, passive=True)[1]
    client.qos(0)
    tag = client.consume(queue)
    found = []
    while len(found) < count:
        messages = client.poll(PATIENCE_S * 1000)
        assert messages, f"{len(found)} of {count} messages of {queue} came"
        found += [identity_of(message.body) for message in messages]
    client.cancel(tag)
    return found


def read_stream(client):
    """(offset, identity) of all that is in the stream."""
    state = client.get("s", no_ack=True).properties["headers"]
    count = state["x-stream-next-offset"] - state["x-stream-first-offset"]
    client.qos(1000)
    client.consume("s", arguments={"x-stream-offset": "first"})
    found = []
    while len(found) < count:
        messages = client.poll(PATIENCE_S * 1000)
        assert messages, f"{len(found)} of {count} messages of the stream came"
        found += [(message.properties["headers"]["x-stream-offset"], identity_of(message.body)) for message in messages]
        client.ack(messages[-1], multiple=True)
    return found


def check(broker, ledger, all_acks_count):
    """Compare what is there with what the clients know."""
    client = connect(broker.url)
    ledger.check_stream(read_stream(client))
    client.close()
    for queue in ("work", "kept"):
        client = connect(broker.url)
        ledger.check_queue(queue, look(client, queue), all_acks_count)
        client.close()
    client = connect(broker.url)
    ledger.check_transactions(look(client, "pairs"))
    client.close()


def empty(broker, ledger):
    """Purge what nobody consumes, so that a long run stays small."""
    client = connect(broker.url)
    for queue in ("kept", "pairs"):
        client.queue_purge(queue)
    client.close()
    ledger.gone |= ledger.confirmed.pop("kept", set())
    ledger.committed = set()


def confirms(ledger):
    """Messages in queues that were confirmed and are not known to be gone."""
    return sum(map(len, list(ledger.confirmed.values())))


def loaded(broker, ledger, generation, seconds, settles):
    """Clients at work for some seconds, and until they have done something; then the kill, with (`settles`) a pause before it."""
    enough = confirms(ledger) + 10
    limit = time.monotonic() + PATIENCE_S
    workers = [made(broker, ledger, generation) for made in (WindowPublisher, PikaPublisher, PikaTransactions, PikaConsumer, StreamReader)]
    for worker in workers:
        worker.start()
    time.sleep(seconds)
    while (confirms(ledger) < enough or not ledger.seen or not (ledger.acked or ledger.gone)) and time.monotonic() < limit:
        time.sleep(0.02)
    if settles:
        for worker in workers:
            worker.finish()
        time.sleep(SETTLE_S)
    broker.process.kill()
    broker.process.wait(60)
    for worker in workers:
        worker.finish()


def test_a_killed_broker_comes_back_with_everything_it_confirmed(tmp_path):
    seed = int(os.environ.get("LEVERET_KILL_SEED", random.randrange(1 << 30)))
    print(f"LEVERET_KILL_SEED={seed}")
    chance = random.Random(seed)
    ledger = Ledger()
    directory = str(tmp_path / "data")
    settings = str(tmp_path / "leveret.toml")
    with open(settings, "w", encoding="utf-8") as file:
        file.write(LIMITS)
    settles = False
    confirmed = 0
    for kill in range(KILLS + 1):
        broker = BrokerProcess("leveret", arguments=["--data", directory, "--config", settings, *SIZES, *MODES[kill % len(MODES)]])
        try:
            if kill == 0:
                declare(broker)
            check(broker, ledger, settles)
            if kill == KILLS:
                break
            if kill % 10 == 9:
                empty(broker, ledger)
            before = confirms(ledger)
            settles = kill % 4 == 3
            loaded(broker, ledger, kill, chance.uniform(0.05, 0.6), settles)
            confirmed += confirms(ledger) - before
        finally:
            broker.stop()
    print(
        f"{KILLS} kills, {confirmed} confirmed messages in queues, {len(ledger.gone)} acked and gone, "
        f"{len(ledger.seen)} offsets of the stream compared"
    )
    assert confirmed > 5 * KILLS and ledger.gone and ledger.seen, "the clients did too little for a test"
