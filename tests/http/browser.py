"""A Chromium without a window, driven by its DevTools protocol (JSON over a WebSocket), and one page in it."""

import json
import shutil
import socket
import subprocess
import tempfile
import time

from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, Ping, Request, TextMessage

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
START_S = 60
WAIT_S = 60


class Browser:
    """`errors`: what its console and its scripts complained of."""

    def __init__(self):
        self.errors = []
        self.directory = tempfile.mkdtemp(prefix="chromium_")
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--remote-debugging-port=0")
        self.process = subprocess.Popen(
            [CHROMIUM, *options, f"--user-data-dir={self.directory}", "about:blank"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        try:
            self.connect()
        except BaseException:  # nothing that was started stays behind
            self.close()
            raise

    def connect(self):
        limit = time.monotonic() + START_S
        for line in self.process.stderr:
            if b"DevTools listening on ws://" in line:
                break
            assert time.monotonic() < limit, "Chromium does not listen"
        place, _, path = line.decode().strip().partition("ws://")[2].partition("/")
        host, _, port = place.partition(":")
        self.socket = socket.create_connection((host, int(port)), WAIT_S)
        self.web = WSConnection(ConnectionType.CLIENT)
        self.socket.sendall(self.web.send(Request(host=place, target="/" + path)))
        self.text, self.messages, self.number, self.session = "", [], 0, None
        while not any(isinstance(event, AcceptConnection) for event in self.events()):
            pass
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for name in ("Page", "Runtime", "Log"):
            self.call(name + ".enable")

    def events(self):
        self.web.receive_data(self.socket.recv(1 << 20) or None)
        made = list(self.web.events())
        for event in made:
            if isinstance(event, Ping):
                self.socket.sendall(self.web.send(event.response()))
            elif isinstance(event, TextMessage):
                self.text += event.data
                if event.message_finished:
                    self.messages.append(json.loads(self.text))
                    self.text = ""
        return made

    def call(self, method, **given):
        """The result of a command."""
        self.number += 1
        asked = {"id": self.number, "method": method, "params": given, **({"sessionId": self.session} if self.session else {})}
        self.socket.sendall(self.web.send(TextMessage(data=json.dumps(asked))))
        while True:
            while self.messages:
                told = self.messages.pop(0)
                if told.get("id") == asked["id"]:
                    assert "error" not in told, (method, told)
                    return told["result"]
                self.see(told)
            self.events()

    def see(self, told):
        """An event of the page: a dialog is accepted, a complaint kept."""
        if told.get("method") == "Page.javascriptDialogOpening":
            self.number += 1
            given = {"id": self.number, "method": "Page.handleJavaScriptDialog", "params": {"accept": True}, "sessionId": self.session}
            self.socket.sendall(self.web.send(TextMessage(data=json.dumps(given))))
        elif told.get("method") == "Runtime.exceptionThrown":
            self.errors.append(told["params"]["exceptionDetails"])
        elif told.get("method") == "Log.entryAdded" and told["params"]["entry"]["level"] == "error":
            self.errors.append(told["params"]["entry"])

    def run(self, script):
        """The value of an expression, or of its promise."""
        told = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in told, (script, told)
        return told["result"].get("value")

    def wait(self, script):
        """Wait until an expression is true."""
        limit = time.monotonic() + WAIT_S
        while not self.run(script):
            assert time.monotonic() < limit, (script, self.run("document.body.innerText"), self.errors)
            time.sleep(0.05)

    def open(self, url, width, scheme):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=url)

    def press(self, label):
        """Press the button or the link with this label."""
        found = (
            f"[...document.querySelectorAll('button, nav a')].find((each) => (each.ariaLabel || each.textContent) === {json.dumps(label)})"
        )
        self.wait(f"{found} !== undefined")
        self.run(f"setTimeout(() => {found}.click(), 0)")

    def fill(self, name, value, at=0):
        self.run(f"document.querySelectorAll('input[name={name}]')[{at}].value = {json.dumps(value)}")

    def close(self):
        self.process.terminate()
        self.process.wait(30)
        self.process.stderr.close()
        if hasattr(self, "socket"):
            self.socket.close()
        shutil.rmtree(self.directory, ignore_errors=True)
