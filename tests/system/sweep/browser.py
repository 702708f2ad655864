"""Headless Chromium over its debugging pipe: what a page logs, what it asks the network for, how it
looks. Standard library only."""
import base64
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time

FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
         "--disable-extensions",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-default-apps", "--disable-dev-shm-usage", "--hide-scrollbars",
         "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-pipe"]


def find_chromium():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which(
        "google-chrome")


class Browser:
    """Shows one page at a time; `problems` and `requests` are of the page now shown."""

    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_child, self.to_pipe = os.pipe()
        self.from_pipe, from_child = os.pipe()

        def wire():  # Chromium reads commands from 3 and writes answers to 4
            a, b = os.dup(to_child), os.dup(from_child)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [program, *FLAGS, f"--user-data-dir={self.folder.name}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=wire, close_fds=False, start_new_session=True)
        os.close(to_child)
        os.close(from_child)
        self.buffer, self.number, self.session = b"", 0, None
        self.events = []
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(t["targetId"] for t in targets if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.to_pipe)
        try:
            self.process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self.from_pipe)
        self.folder.cleanup()

    def read(self, deadline):
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.from_pipe], [], [], left)[0]:
                raise TimeoutError("chromium does not answer")
            piece = os.read(self.from_pipe, 1 << 20)
            if not piece:
                raise EOFError("chromium ended")
            self.buffer += piece
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to_pipe, data):]
        deadline = time.monotonic() + 60
        while True:
            answer = self.read(deadline)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def wait_for(self, event):
        deadline = time.monotonic() + 60
        while not any(e["method"] == event for e in self.events):
            answer = self.read(deadline)
            if "method" in answer:
                self.events.append(answer)

    def show(self, path, width=1200, height=900, dark=False, phone=False):
        self.events = []
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=2 if phone else 1, mobile=phone)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        self.wait_for("Page.loadEventFired")
        self.evaluate("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")

    def evaluate(self, script):
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    @property
    def problems(self):
        found = []
        for e in self.events:
            p = e["params"]
            if e["method"] == "Runtime.exceptionThrown":
                found.append(str(p["exceptionDetails"]))
            elif e["method"] == "Runtime.consoleAPICalled":
                found.append(f"console.{p['type']}: {p['args']}")
            elif e["method"] == "Log.entryAdded":
                found.append(f"{p['entry']['level']}: {p['entry']['text']}")
        return found

    @property
    def requests(self):
        """What was asked for beside the page itself and data within it."""
        urls = [e["params"]["request"]["url"] for e in self.events
                if e["method"] == "Network.requestWillBeSent"]
        return [u for u in urls[1:] if not u.startswith(("data:", "blob:"))]

    def screenshot(self, path, whole=True, clip=None):
        options = {"format": "png", "captureBeyondViewport": whole}
        if clip:
            options["clip"] = {**clip, "scale": 1}
        pathlib.Path(path).write_bytes(base64.b64decode(
            self.call("Page.captureScreenshot", **options)["data"]))

    def move(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def press(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
