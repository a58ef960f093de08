"""The listeners for HTTP of `leveret serve`: opened here, so that a broker without one imports nothing of ports/http."""

import os

from leveret.ports.sockets import SocketStream

from .usage import ListenFailed

SECRET_SIZE = 32


class Web:
    """`serving`: serve.Server; `log`: its OperatorLog, whose sentences about the broker the page shows."""

    def __init__(self, serving, log):
        try:
            from leveret.ports.http.server import HttpServer
        except ImportError:
            raise ListenFailed("cannot listen for HTTP: it needs h11, as `pip install leveret[web]` brings it") from None
        self.serving = serving
        broker = serving.broker
        self.server = HttpServer(broker, os.urandom(SECRET_SIZE))
        self.server.lines = serving.lines
        self.server.trace, self.server.is_traced = serving.trace, serving.is_traced

        def tell(sentence, *level):
            self.server.note(sentence)
            log.peer(sentence, *level)

        broker.log = tell

    def listen(self, place):
        """Open a listener: (host, port). Raises OSError, ListenFailed."""
        self.server.metrics_open = self.server.metrics_open or place.metrics is not None
        make_stream = self.secured(place) if place.scheme == "https" else SocketStream
        return self.serving.loop.listen(place.host, place.port, self.server.accept, make_stream)

    def secured(self, place):
        """A maker of streams with TLS. Raises ListenFailed."""
        from leveret.ports.tls import TlsStream

        certificates = self.serving.certificates_of(place)

        def make_stream(connected, name, from_loopback, host):
            return TlsStream(connected, name, from_loopback, host, certificates.context, self.serving.refused)

        return make_stream

    def tell(self, addresses, urls, kept):
        """All listeners are open: `urls` of `addresses`; `kept`: a data.Data or None."""
        for place, url in zip(addresses, urls, strict=True):
            if place.scheme != "serial":
                self.server.listeners.append((place.scheme, place.host, int(url.rpartition(":")[2])))
            if getattr(place, "cert", None) and place.cert not in self.server.certificates:
                self.server.certificates.append(place.cert)
        self.server.directory = None if kept is None else kept.directory
