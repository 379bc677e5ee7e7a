"""A page in a headless Chromium, steered over the DevTools protocol through two pipes; the standard library is enough.

with Page() as page:
    page.open("file:///tmp/compare.html")
    page.run("document.title")
"""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 60


def find_chromium():
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Page:
    """What the page does wrong stands in `complaints`, what it asks of the network in `requests`."""

    def __init__(self, *options):
        self.profile = tempfile.mkdtemp(prefix="tprimat_chromium_")
        self.complaints, self.requests, self.events = [], [], []
        self.last_id, self.buffer = 0, b""
        self._start(options)

    def _start(self, options):
        to_read, self.to_browser = os.pipe()
        self.from_browser, to_write = os.pipe()

        def place_pipes():  # the browser reads 3 and writes 4
            read, write = os.dup(to_read), os.dup(to_write)
            os.dup2(read, 3), os.dup2(write, 4)

        command = [find_chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--no-first-run", "--disable-background-networking", "--disable-component-update",
                   "--remote-debugging-pipe", f"--user-data-dir={self.profile}", *options, "about:blank"]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=place_pipes,
                                        start_new_session=True)
        os.close(to_read), os.close(to_write)
        targets = self.send("Target.getTargets")["targetInfos"]
        target = next(each["targetId"] for each in targets if each["type"] == "page")
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.session = None
            self.send("Browser.close")
            self.process.wait(10)
        except (OSError, TimeoutError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.to_browser), os.close(self.from_browser)
        shutil.rmtree(self.profile, ignore_errors=True)

    def send(self, method, **parameters):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": parameters}
        if getattr(self, "session", None):
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to_browser, data):]
        while True:
            answer = self._receive()
            if answer.get("id") != self.last_id:
                continue
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            return answer["result"]

    def _receive(self):
        """The next message; events are noted on the way."""
        deadline = time.monotonic() + SECONDS
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.from_browser], [], [], max(0, deadline - time.monotonic()))
            data = os.read(self.from_browser, 1 << 20) if ready else b""
            if not ready:
                raise TimeoutError(f"no answer within {SECONDS} s")
            if not data:
                raise OSError("the browser ended")
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(line)
        if "method" in message:
            self._note(message["method"], message["params"])
        return message

    def _note(self, method, parameters):
        self.events.append(method)
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.complaints.append(str([each.get("value") for each in parameters["args"]]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.complaints.append(parameters["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])

    def open(self, url):
        """Seconds until the page is loaded, its scripts are run and the first frame is on the screen."""
        start = time.monotonic()
        self.events.clear()
        self.send("Page.navigate", url=url)
        while "Page.loadEventFired" not in self.events:
            self._receive()
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
        return time.monotonic() - start

    def run(self, script):
        """The value of a JavaScript expression, of a promise when it is kept."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise RuntimeError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def wait_for(self, condition, seconds=20):
        deadline = time.monotonic() + seconds
        while not self.run(condition):
            if time.monotonic() > deadline:
                raise TimeoutError(f"never true: {condition}")
            time.sleep(0.05)

    def resize(self, width, height):
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme):
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path):
        data = self.send("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def print_pdf(self):
        return base64.b64decode(self.send("Page.printToPDF", printBackground=True, landscape=True)["data"])
