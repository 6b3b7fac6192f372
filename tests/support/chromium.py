"""A real Chromium without a window, driven by its debugging protocol through a pipe."""

import base64
import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--remote-debugging-pipe")
# it reads commands from descriptor 3, and writes to 4
_START = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)
_PATIENCE = 90.0
_KEYS = {"Tab": ("Tab", 9, ""), "Enter": ("Enter", 13, "\r"), " ": ("Space", 32, " ")}


class Tab:
    """One page of a browser."""

    def __init__(self, commands, answers):
        self._commands, self._answers, self._number, self._read = commands, answers, 0, b""
        (page,) = (each for each in self._call("Target.getTargets")["targetInfos"] if each["type"] == "page")
        self._session = None
        self._session = self._call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]

    def _call(self, method, **parameters):
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if getattr(self, "_session", None):
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            pass
        assert "error" not in answer, answer
        return answer["result"]

    def _next(self):
        while b"\0" not in self._read:
            more = os.read(self._answers, 65536)
            assert more, "the browser has ended"
            self._read += more
        first, _, self._read = self._read.partition(b"\0")
        return json.loads(first)

    def open(self, url):
        self._call("Page.navigate", url=url)

    def resize(self, width, height, scheme="light"):
        """The window in CSS pixels, without room for scroll bars, and whether its user likes it "light" or "dark"."""
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self._call("Emulation.setScrollbarsHidden", hidden=True)
        self._call("Emulation.setFocusEmulationEnabled", enabled=True)
        self.prefer(scheme)

    def prefer(self, scheme, media=""):
        """`media`: "print" shows the page in its window as on paper."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._call("Emulation.setEmulatedMedia", media=media, features=features)

    def print(self, *, background=True):
        """The page as PDF, on A4."""
        size = {"paperWidth": 210 / 25.4, "paperHeight": 297 / 25.4, "preferCSSPageSize": True}
        return base64.b64decode(self._call("Page.printToPDF", printBackground=background, **size)["data"])

    def show(self, page: Path):
        """A file; once all of it is there."""
        self.open(page.as_uri())
        self.wait(f"location.href == {json.dumps(page.as_uri())} && document.readyState == 'complete'")

    def press(self, key, *, shift=False):
        """A key of the keyboard, down and up."""
        code, number, text = _KEYS[key]
        shared = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": 8 if shift else 0}
        kind = "keyDown" if text else "rawKeyDown"
        self._call("Input.dispatchKeyEvent", type=kind, text=text, **shared)
        self._call("Input.dispatchKeyEvent", type="keyUp", **shared)

    def picture(self, top=0, height=None):
        """What the window shows, or the page from `top` on, as PNG."""
        clip = {}
        if height is not None:
            width = self.run("document.documentElement.clientWidth")
            clip = {
                "clip": {"x": 0, "y": top, "width": width, "height": height, "scale": 1},
                "captureBeyondViewport": True,
            }
        return base64.b64decode(self._call("Page.captureScreenshot", format="png", **clip)["data"])

    def run(self, script):
        """The value of an expression that must not fail."""
        answer = self._call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def evaluate(self, expression):
        """The value of an expression in the page; None while there is none."""
        return self._call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def wait(self, expression):
        """Until it is true."""
        deadline = time.monotonic() + _PATIENCE
        while not self.evaluate(expression):
            assert time.monotonic() < deadline, f"not in time: {expression}; {self.evaluate('document.body.innerText')}"
            time.sleep(0.05)


@contextmanager
def opened(folder: Path):
    """A tab of a browser whose profile lies in that folder."""
    ours, theirs = os.pipe(), os.pipe()
    given = [fcntl.fcntl(each, fcntl.F_DUPFD, 10) for each in (ours[0], theirs[1])]
    for each in (ours[0], theirs[1]):
        os.close(each)
    command = (sys.executable, "-c", _START, *map(str, given), PROGRAM, *_OPTIONS, f"--user-data-dir={folder}")
    silent = subprocess.DEVNULL
    browser = subprocess.Popen((*command, "about:blank"), stdin=silent, stdout=silent, stderr=silent, pass_fds=given)
    for each in given:
        os.close(each)
    try:
        yield Tab(ours[1], theirs[0])
    finally:
        browser.kill()
        browser.wait()
        os.close(ours[1])
        os.close(theirs[0])
