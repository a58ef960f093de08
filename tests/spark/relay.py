"""A TCP relay in front of a broker that the test can cut: the connections that exist, after so many octets, or for a while."""

import socket
import threading


def end(connected):
    """Ends a connection, also when another thread waits for something from it."""
    try:
        connected.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it has ended already
    connected.close()


class Relay:
    """Forwards 127.0.0.1:`port` to `target_port`. Each accepted connection is cut after `octets_max` octets from the broker, if set."""

    def __init__(self, target_port):
        self._target_port = target_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.octets_max = None
        self.accepted = 0
        self.open = True
        self._sockets = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        """Cut what is connected now."""
        for one in self._sockets:
            end(one)
        self._sockets = []

    def close(self):
        self.cut()
        self._listener.close()

    def _accept(self):
        while True:
            try:
                client = self._listener.accept()[0]
            except OSError:
                return
            self.accepted += 1
            if not self.open:
                client.close()
                continue
            broker = socket.create_connection(("127.0.0.1", self._target_port))
            self._sockets += [client, broker]
            threading.Thread(target=self._carry, args=(client, broker, None), daemon=True).start()
            threading.Thread(target=self._carry, args=(broker, client, self.octets_max), daemon=True).start()

    def _carry(self, source, target, octets_max):
        carried = 0
        try:
            while octets_max is None or carried < octets_max:
                octets = source.recv(65536 if octets_max is None else min(65536, octets_max - carried))
                if not octets:
                    break
                target.sendall(octets)
                carried += len(octets)
        except OSError:
            pass  # cut from the other side: the end is the same
        for one in (source, target):
            end(one)
