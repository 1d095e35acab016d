"""Debian's chromium without a screen, driven over the DevTools protocol.

The protocol comes through two pipes (``--remote-debugging-pipe``): messages of JSON with a zero
byte between them. So no package is needed for it, and no port is open.
"""

from __future__ import annotations

import base64
import fcntl
import itertools
import json
import os
import selectors
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support import requirements

#: As root chromium has no sandbox. The other options keep it from the network and from old state.
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--font-render-hinting=none",
)
#: A guard against a browser that hangs. An answer ends each wait earlier.
PATIENCE_S = 120.0
#: The names, codes and texts of keys that are not single characters.
_KEYS = {
    "Enter": ("Enter", 13, "\r"),
    "Escape": ("Escape", 27, ""),
    "Tab": ("Tab", 9, ""),
    "ArrowLeft": ("ArrowLeft", 37, ""),
    "ArrowUp": ("ArrowUp", 38, ""),
    "ArrowRight": ("ArrowRight", 39, ""),
    "ArrowDown": ("ArrowDown", 40, ""),
    "End": ("End", 35, ""),
    "Home": ("Home", 36, ""),
    " ": ("Space", 32, " "),
}
_SHIFT = 8


class BrowserError(Exception):
    """The browser refused a command, or the script of the page raised an error."""


class Browser:
    """One running browser with one page."""

    def __init__(self, process: subprocess.Popen[bytes], read_end: int, write_end: int) -> None:
        self._process = process
        self._read_end = read_end
        self._write_end = write_end
        self._numbers = itertools.count(1)
        self._buffer = b""
        self._session = ""
        #: All events since the page was opened: the name and the parameters.
        self.events: list[tuple[str, dict[str, Any]]] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command, and return its result. Raises BrowserError."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']}")
                result: dict[str, Any] = answer["result"]
                return result

    def _receive(self) -> dict[str, Any]:
        """Return the next message, and note it if it is an event."""
        deadline = time.monotonic() + PATIENCE_S
        with selectors.DefaultSelector() as selector:
            selector.register(self._read_end, selectors.EVENT_READ)
            while b"\0" not in self._buffer:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise BrowserError("the browser does not answer")
                data = os.read(self._read_end, 1 << 20)
                if not data:
                    raise BrowserError("the browser has ended")
                self._buffer += data
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            self.events.append((message["method"], message.get("params", {})))
        return message

    # ---- the page ----

    def open(self, path: Path, ready: str = "document.documentElement?.dataset.ready") -> None:
        """Open a file, and wait until an expression of its page is true."""
        self.events.clear()
        self.send("Page.navigate", url=path.resolve().as_uri())
        self.wait_for(ready)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression, which may be a promise. Raises BrowserError."""
        result = self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in result:
            raise BrowserError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def wait_for(self, expression: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.evaluate(expression):
            if time.monotonic() > deadline:
                raise BrowserError(f"never true: {expression}")
            time.sleep(0.02)

    def press(self, key: str, shift: bool = False) -> None:
        """Press a key of the keyboard."""
        code, number, text = _KEYS.get(key) or (f"Key{key.upper()}", ord(key.upper()), key)
        common = {
            "key": key,
            "code": code,
            "windowsVirtualKeyCode": number,
            "modifiers": _SHIFT * shift,
        }
        self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def resize(self, width: int, height: int = 900, ratio: float = 1.0) -> None:
        """Give the window a size in CSS pixels."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=ratio,
            mobile=False,
        )

    def prefer(self, scheme: str) -> None:
        """Choose the scheme of colours, "dark" or "light"."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.send("Emulation.setEmulatedMedia", features=features)

    def screenshot(self, **options: Any) -> bytes:
        """Return a picture of the window as PNG; options of Page.captureScreenshot."""
        return base64.b64decode(self.send("Page.captureScreenshot", **options)["data"])

    def pdf(self) -> bytes:
        """Return the printed page."""
        return base64.b64decode(self.send("Page.printToPDF", printBackground=True)["data"])

    # ---- what happened ----

    def requests(self) -> list[str]:
        """Return the addresses of all requests but that of the page itself."""
        urls = [
            parameters["request"]["url"]
            for name, parameters in self.events
            if name == "Network.requestWillBeSent"
        ]
        return urls[1:]

    def complaints(self) -> list[str]:
        """Return the errors and warnings of the page."""
        names = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [json.dumps(parameters) for name, parameters in self.events if name in names]


def _pipe() -> tuple[int, int]:
    """Return a pipe whose ends are neither of the descriptors that the browser uses, 3 and 4."""
    ends = os.pipe()
    high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends]
    for end in ends:
        os.close(end)
    return high[0], high[1]


@contextmanager
def browser() -> Iterator[Browser]:
    """Start a browser, and end it. Skips the test if there is none."""
    program = requirements.command("chromium")
    to_browser, write_end = _pipe()
    read_end, from_browser = _pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        process = subprocess.Popen(
            [
                "bash",  # dash knows no descriptor above 9
                "-c",
                f'exec "$0" "$@" 3<&{to_browser} 4>&{from_browser}',
                str(program),
                *_OPTIONS,
                "--remote-debugging-pipe",
                f"--user-data-dir={home}",
            ],
            pass_fds=(to_browser, from_browser),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        try:
            yield Browser(process, read_end, write_end)
        finally:
            process.kill()
            process.wait()
            os.close(read_end)
            os.close(write_end)
