"""A headless Chromium, spoken to through its pipe of the DevTools protocol: nothing to install beside the browser."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "headless_shell")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions", "--mute-audio",
    "--disable-dev-shm-usage", "--disable-background-networking", "--remote-debugging-pipe", "--hide-scrollbars",
)  # fmt: skip


def executable() -> str | None:
    """A Chromium of this machine; the variable CHROMIUM names another one."""
    named = os.environ.get("CHROMIUM")
    return named or next((found for name in NAMES if (found := shutil.which(name))), None)


@dataclass
class Page:
    """A tab: what it said on its console, and what it asked of the network."""

    read: int
    write: int
    session: str | None = None
    count: int = 0
    rest: bytes = b""
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    loaded: bool = False

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its answer; events on the way are kept."""
        self.count += 1
        message: dict[str, Any] = {"id": self.count, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        while (answer := self.next()).get("id") != self.count:
            self.note(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return dict(answer["result"])

    def next(self) -> dict[str, Any]:
        while b"\0" not in self.rest:
            piece = os.read(self.read, 1 << 16)
            if not piece:
                raise RuntimeError("the browser has ended")
            self.rest += piece
        line, _, self.rest = self.rest.partition(b"\0")
        return dict(json.loads(line))

    def note(self, event: dict[str, Any]) -> None:
        name, about = event.get("method"), event.get("params", {})
        if name == "Runtime.consoleAPICalled":
            self.said.append(str([one.get("value") for one in about["args"]]))
        elif name == "Runtime.exceptionThrown":
            self.said.append(about["exceptionDetails"]["text"])
        elif name == "Log.entryAdded":
            self.said.append(about["entry"]["text"])
        elif name == "Network.requestWillBeSent":
            self.asked.append(about["request"]["url"])
        elif name == "Page.loadEventFired":
            self.loaded = True

    def open(self, file: Path) -> None:
        """Load a file and wait until it is there."""
        self.loaded = False
        self.call("Page.navigate", url=file.resolve().as_uri())
        while not self.loaded:
            self.note(self.next())

    def size(self, width: int, height: int = 900, dark: bool = False) -> None:
        """Set how wide and high the window is, and whether its user likes it dark."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])

    def ask(self, script: str) -> Any:
        """Evaluate JavaScript."""
        return self.call("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    def screenshot(self, file: Path) -> None:
        """Write a picture of the whole page."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(shot["data"]))


@contextmanager
def browser(program: str, profile: Path) -> Iterator[Page]:
    """Start a browser with an empty profile and yield its tab; end it afterwards."""
    import fcntl

    ours = [os.pipe(), os.pipe()]
    their_read, their_write = (fcntl.fcntl(fd, fcntl.F_DUPFD, 50) for fd in (ours[0][0], ours[1][1]))

    def connect() -> None:
        os.dup2(their_read, 3)
        os.dup2(their_write, 4)

    command = [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    child = subprocess.Popen(
        command, close_fds=False, preexec_fn=connect, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for fd in (ours[0][0], ours[1][1], their_read, their_write):
        os.close(fd)
    page = Page(ours[1][0], ours[0][1])
    try:
        targets = page.call("Target.getTargets")["targetInfos"]
        tab = next(one["targetId"] for one in targets if one["type"] == "page")
        page.session = page.call("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        yield page
    finally:
        child.terminate()
        child.wait(20)
        for fd in (page.read, page.write):
            os.close(fd)
