#!/usr/bin/env python3
"""`gpusim run --watch`: who gets the page, what it says, and how it looks in headless Chromium.

  test_watch.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...
Exit status 77 where there is no Chromium.
"""
import contextlib
import http.client
import json
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent / "sweep"))
sys.path.insert(0, str(HERE))
import browser  # noqa: E402
import test_first_hour  # noqa: E402


class Watch(unittest.TestCase):
    gpusim: pathlib.Path
    build: pathlib.Path

    @classmethod
    def setUpClass(cls):
        test_first_hour.FirstHour.build = cls.build
        test_first_hour.FirstHour.setUpClass()
        cls.guests = test_first_hour.FirstHour.guests

    def start(self, *words, turns=10**12):
        """A run that can be watched, and its port."""
        process = subprocess.Popen(
            [str(self.gpusim), "run", str(self.guests), "--entry", "spin", "--arg", str(turns),
             "--cores", "8", *words], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        line = process.stderr.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/$", line.strip())
        self.assertTrue(found, line)
        return process, int(found[1])

    def get(self, port, path="/", host=None, method="GET"):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request(method, path, headers={"Host": host} if host else {})
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        return reply.status, text

    def state(self, port):
        status, text = self.get(port, "/state")
        self.assertEqual(status, 200)
        return json.loads(text)

    def test_state_tells_the_run(self):
        process, port = self.start("--watch", "--max-instructions", str(10**15))
        deadline = time.monotonic() + 60
        while not (first := self.state(port))["cores"] and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual((first["program"], first["cores"], first["ended"]),
                         ("guests.elf", 8, False))
        deadline = time.monotonic() + 60
        while len((later := self.state(port))["samples"]) < 4 and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertGreater(later["instructions"], first["instructions"])
        self.assertEqual((later["started"], later["finished"]), (8, 0))
        self.assertEqual(later["most_instructions"], 8 * 10**15)
        counts = [n for _, n in later["samples"]]
        self.assertEqual(counts, sorted(counts))
        self.assertIsNone(process.poll())

    def test_only_this_machine_and_only_to_read(self):
        _, port = self.start("--watch=0")
        self.assertEqual(self.get(port)[0], 200)
        self.assertEqual(self.get(port, host=f"localhost:{port}")[0], 200)
        self.assertEqual(self.get(port, host=f"elsewhere.example:{port}")[0], 403)
        self.assertEqual(self.get(port, "/state", host="elsewhere.example")[0], 403)
        self.assertEqual(self.get(port, "/etc/passwd")[0], 404)
        self.assertEqual(self.get(port, "/../etc/passwd")[0], 404)
        self.assertEqual(self.get(port, method="POST")[0], 405)
        listening = [line.split()[1] for line in pathlib.Path("/proc/net/tcp").read_text()
                     .splitlines()[1:] if line.split()[1].endswith(f":{port:04X}")
                     and line.split()[3] == "0A"]
        self.assertEqual(listening, [f"0100007F:{port:04X}"])  # 127.0.0.1

    def test_strange_clients_do_no_harm(self):
        process, port = self.start("--watch")
        for data in (b"", b"\r\n\r\n", b"GET\r\n\r\n", b"x" * 20000, b"GET / HTTP/1.1\r\nHost"):
            with (contextlib.suppress(ConnectionError),
                  socket.create_connection(("127.0.0.1", port), timeout=20) as s):
                s.sendall(data)
        self.assertEqual(self.get(port)[0], 200)
        self.assertIsNone(process.poll())

    def test_a_port_that_is_taken_is_an_error(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            done = subprocess.run([str(self.gpusim), "run", str(self.guests), "--entry", "spin",
                                   "--arg", "1", f"--watch={port}"], capture_output=True,
                                  text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"\Agpusim: error: --watch \d+: "
                                      r"Address already in use; [^\n]+\n\Z")
        done = subprocess.run([str(self.gpusim), "run", str(self.guests), "--watch=http"],
                              capture_output=True, text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("expected a port", done.stderr)

    def test_a_browser_shows_it_live(self):
        process, port = self.start("--watch")
        with browser.Browser(browser.find_chromium()) as b:
            for width in (1280, 400):
                b.events = []
                b.call("Emulation.setDeviceMetricsOverride", width=width, height=800,
                       deviceScaleFactor=1, mobile=width < 500)
                b.call("Page.navigate", url=f"http://127.0.0.1:{port}/")
                b.wait_for("Page.loadEventFired")
                deadline = time.monotonic() + 60
                while time.monotonic() < deadline and not b.evaluate(
                        "Number(document.documentElement.dataset.looks || 0) > 2 && "
                        "document.querySelectorAll('#speed path').length === 1"):
                    time.sleep(0.2)
                answer = b.evaluate("document.getElementById('answer').textContent")
                self.assertRegex(answer, r"^[\d.]+ [kMGT] instructions in [\d mins]+, [\d.]+ "
                                         r"[kMGT] per second; 0 of 8 cores that started have ")
                self.assertEqual(b.evaluate("document.title"), "0 of 8: guests.elf")
                self.assertLessEqual(b.evaluate("document.documentElement.scrollWidth"), width)
                self.assertEqual(b.evaluate("""[...document.querySelectorAll('svg text')]
                  .map(t => [t.textContent, t.getBoundingClientRect()])
                  .filter(([, r]) => r.left < 0 || r.right > innerWidth).map(([s]) => s)"""), [])
                b.screenshot(self.build / f"watch-{width}.png")
                self.assertEqual(b.problems, [])
            process.send_signal(signal.SIGINT)
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and not (text := b.evaluate(
                    "document.getElementById('end').textContent")):
                time.sleep(0.1)
            self.assertEqual(text, "The run has ended with status 130.")
        self.assertEqual(process.wait(timeout=60), 130)


if __name__ == "__main__":
    if not browser.find_chromium():
        print("skipped: no Chromium is installed (Debian package chromium)")
        sys.exit(77)
    Watch.gpusim, Watch.build = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
