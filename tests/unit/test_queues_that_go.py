"""Queues that are deleted with their consumers free their places as fast as they are deleted, also where many connections do it."""

from peer import Peer, encoded, new_broker


def test_places_of_queues_do_not_run_out_for_who_makes_and_deletes_them():
    """Each round of the broker sees one queue of each connection made, read and deleted."""
    broker = new_broker()
    peers = [Peer(broker) for _ in range(6)]
    places = broker.tables.queue_pool[2]
    for number in range(2 * places):
        for at, peer in enumerate(peers):
            name = "q%d.%d" % (at, number)
            octets = encoded("queue_declare", 1, 0, name, False, False, True, False, False, {})
            octets += encoded("basic_consume", 1, 0, name, "c%d" % number, False, True, False, False, {})
            octets += encoded("queue_delete", 1, 0, name, False, False, False)
            view = peer.connection.writable()[: len(octets)]
            view[:] = octets
            peer.connection.received(len(octets))
        broker.run()  # one round, whatever it has left to do
        for peer in peers:
            view = peer.connection.pending()
            peer.inbox += bytes(view)
            peer.connection.sent(len(view))
    for peer in peers:
        names = [frame[0] for frame in peer.frames()]
        assert names.count("queue_delete_ok") == 2 * places and "connection_close" not in names
    assert broker.tables.queue_pool[2] == places and not broker.jobs
