"""A browser without a window or a network, by the Chrome DevTools Protocol over a pipe."""

import base64
import json
import os
import select
import subprocess

from waiting import COMMAND_S

_PROGRAM = (
    "chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
    "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--disable-extensions", "--hide-scrollbars", "--remote-debugging-pipe",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)  # fmt: skip


class Browser:
    """One process with one page; use as a context manager."""

    def __init__(self, profile):
        to_read, self._out = os.pipe()
        self._in, to_write = os.pipe()
        # The protocol is read from descriptor 3 and written to 4.
        script = 'exec 3<&"$0" 4>&"$1"; shift; exec "$@"'
        command = (*_PROGRAM, f"--user-data-dir={profile}", "about:blank")
        self._process = subprocess.Popen(
            ["bash", "-c", script, str(to_read), str(to_write), *command],
            pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(to_read)
        os.close(to_write)
        self._bytes, self._number, self._session = b"", 0, None
        self.events = []
        """What has happened: (method, params)."""

    def __enter__(self):
        target = self("Target.createTarget", url="about:blank")["targetId"]
        attached = self("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(f"{domain}.enable")
        return self

    def __exit__(self, *_):
        self._session = None
        self("Browser.close")
        self._process.wait(COMMAND_S)
        os.close(self._in)
        os.close(self._out)

    def __call__(self, method, **params):
        """Call a method and return its result."""
        self._number += 1
        number = self._number
        told = {"id": number, "method": method, "params": params}
        if self._session:
            told["sessionId"] = self._session
        os.write(self._out, json.dumps(told).encode() + b"\0")
        while True:
            message = self._next()
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            self._keep(message)

    def _next(self):
        while b"\0" not in self._bytes:
            ready, _, _ = select.select([self._in], [], [], COMMAND_S)
            more = os.read(self._in, 1 << 20) if ready else b""
            assert more, "the browser says nothing"
            self._bytes += more
        message, _, self._bytes = self._bytes.partition(b"\0")
        return json.loads(message)

    def _keep(self, message):
        if "method" in message:
            self.events.append((message["method"], message["params"]))

    def open(self, path, *, scripts=True):
        """Load a file; with its scripts, wait until they have run and two frames were drawn."""
        self("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.events.clear()
        self("Page.navigate", url=path.as_uri())
        while not any(method == "Page.loadEventFired" for method, _ in self.events):
            self._keep(self._next())
        if scripts:
            self.frame()

    def frame(self):
        """Wait until two frames were drawn."""
        self.run("new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")

    def run(self, expression):
        """Return the value of an expression in the page; of a promise, when it is there."""
        done = self(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def look(self, *, width=1100, height=1400, dark=False, medium="", scale=1):
        """Show the page in this size, on this medium."""
        self(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=scale, mobile=width < 600,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self("Emulation.setEmulatedMedia", media=medium, features=[scheme])
        self.frame()

    def mouse(self, kind, x, y, **more):
        """Send an event of the mouse at a place of the window."""
        self("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def picture(self, path, **clip):
        """Write what is seen, or a part of the page, as PNG."""
        more = {"clip": {**clip, "scale": 1}, "captureBeyondViewport": True} if clip else {}
        path.write_bytes(base64.b64decode(self("Page.captureScreenshot", **more)["data"]))

    def pdf(self, path):
        """Print the page."""
        done = self("Page.printToPDF", preferCSSPageSize=True, printBackground=False)
        path.write_bytes(base64.b64decode(done["data"]))

    @property
    def complaints(self):
        """What the console has shown, and what scripts have thrown."""
        kinds = {"Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"}
        return [params for method, params in self.events if method in kinds]

    @property
    def requests(self):
        """Every address that was asked for."""
        asked = (p for method, p in self.events if method == "Network.requestWillBeSent")
        return [params["request"]["url"] for params in asked]
