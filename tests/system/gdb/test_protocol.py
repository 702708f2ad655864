#!/usr/bin/env python3
"""GDB's remote protocol byte by byte: what a debugger never sends, and what it sends seldom.

  test_protocol.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...
"""

import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

from debugged import Run

SEED = int(os.environ.get("GPUSIM_SEED") or random.randrange(1 << 30))


class Client:
    """Speaks the protocol; acknowledges packets."""

    def __init__(self, address):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(30)
        self.socket.connect(address)
        self.rest = b""

    def send(self, payload):
        payload = payload if isinstance(payload, bytes) else payload.encode()
        self.socket.sendall(b"$" + payload + b"#%02x" % (sum(payload) % 256))

    def read(self):
        """The next packet's payload; None where the connection ends."""
        while True:
            found = re.search(rb"\$([^#]*)#..", self.rest, re.DOTALL)
            if found:
                self.rest = self.rest[found.end():]
                try:
                    self.socket.sendall(b"+")
                except ConnectionError:
                    pass  # it was the last one
                return found.group(1).decode("latin1")
            try:
                piece = self.socket.recv(65536)
            except ConnectionError:
                return None
            if not piece:
                return None
            self.rest += piece

    def ask(self, payload):
        self.send(payload)
        return self.read()

    def close(self):
        self.socket.close()


class Protocol(unittest.TestCase):
    def run_guest(self, *words, **options):
        run = Run(self.gpusim, self.build / "cores.elf", *words, **options)
        self.addCleanup(run.__exit__)
        return run

    def connect(self, run):
        client = Client(run.socket)
        self.addCleanup(client.close)
        return client

    def test_threads_and_registers(self):
        client = self.connect(self.run_guest("--cores", 300))
        self.assertIn("PacketSize=", client.ask("qSupported:swbreak+;xmlRegisters=i386"))
        threads, packet = [], "qfThreadInfo"
        while True:
            reply = client.ask(packet)
            if reply == "l":
                break
            threads += [int(word, 16) for word in reply[1:].split(",")]
            packet = "qsThreadInfo"
        self.assertEqual(threads, list(range(1, 301)))
        self.assertEqual(bytes.fromhex(client.ask("qThreadExtraInfo,12c")).decode(),
                         "core 299: runs")
        self.assertIn('<thread id="12c" core="299">', client.ask("qXfer:threads:read::0,ffff"))
        self.assertEqual(client.ask("Hg12c"), "OK")
        self.assertEqual(client.ask("P5=8877665544332211"), "OK")
        self.assertEqual(client.ask("p5"), "8877665544332211")
        whole = client.ask("g")
        self.assertEqual(whole[16 * 5:16 * 6], "8877665544332211")
        self.assertEqual(client.ask("G" + "00" * 8 + whole[16:]), "OK")
        self.assertEqual(client.ask("T12d"), "E03")
        self.assertEqual(client.ask("T12c"), "OK")
        self.assertEqual(client.ask("qC"), "QC1")
        self.assertRegex(client.ask("?"), "^T05thread:1;core:0;")

    def test_the_program_file_may_be_open_several_times(self):
        run = self.run_guest("--cores", 1)
        client = self.connect(run)
        name = str(self.build / "cores.elf").encode().hex()
        handles = [client.ask(f"vFile:open:{name},0,0") for _ in range(64)]
        self.assertEqual(len(set(handles)), 64, handles)
        self.assertEqual(client.ask(f"vFile:open:{name},0,0"), "F-1,18")
        first, second = (reply.removeprefix("F") for reply in handles[:2])
        self.assertEqual(client.ask(f"vFile:close:{first}"), "F0")
        self.assertEqual(client.ask(f"vFile:pread:{first},4,0"), "F-1,9")
        self.assertEqual(client.ask(f"vFile:close:{first}"), "F-1,9")
        self.assertEqual(client.ask(f"vFile:pread:{second},4,0"), "F4;\x7fELF")
        self.assertEqual(client.ask(f"vFile:open:{name},0,0"), handles[0])

    def test_malformed_packets_are_refused(self):
        run = self.run_guest("--cores", 4)
        client = self.connect(run)
        for packet in ("Hx1", "Hg0x5", "p", "pfff", "pzz", "P5", "P5=12", "P5=zz", "Pfff=00", "G00",
                       "Gzz", "m", "m1000", "m1000,", "mzz,4", "m400000,4x", "M400000,4:00",
                       "M400000,2:zzzz", "X400000,5:ab", "Z0", "Z0,", "Z0,400000", "Zz,1,1",
                       "Z2,400000,0", "Z2,ffffffffffffffff,8", "Z0,400000,4;X5,22", "vCont;",
                       "vCont;x", "vCont;c:zz", "vCont;C", "vCont;r1:1", "vCont;c:99", "Czz",
                       "qXfer:features:read:target.xml:", "qXfer:features:read:other.xml:0,10",
                       "qXfer:threads:read::ffffffff,10", "qThreadExtraInfo,zz", "Tzz",
                       "QPassSignals:xyz", "QNonStop:1", "m0,10", "M0,1:00", "m" + 40 * "f" + ",1"):
            with self.subTest(packet):
                self.assertRegex(client.ask(packet), r"\AE[0-9a-f]{2}\Z")
        for packet in ("", "y", "qUnknown", "QUnknown", "vUnknown", "vMustReplyEmpty", "!",
                       "Z7,0,1", "vFile:unlink:00", "qXfer:auxv:read::0,10",
                       "qXfer:features:write:x:0:00"):
            with self.subTest(packet):
                self.assertEqual(client.ask(packet), "")
        self.assertEqual(client.ask("vCont?"), "vCont;c;C;s;S;r")
        self.assertRegex(client.ask("vCont;c"), "^W")

    def test_random_packets(self):
        numbers = random.Random(SEED)
        letters = "?gGpPmMXHTZzqQv,;:=0123456789abcdef-$}*"
        run = self.run_guest("--cores", 4)
        client = self.connect(run)
        for _ in range(2000):
            text = numbers.choice(["", "m", "P", "Z0,", "Z2,", "vCont;", "qXfer:", "vFile:", "Hg",
                                   "q", "X", "vCont;s:", "z"])
            text += "".join(numbers.choice(letters) for _ in range(numbers.randrange(20)))
            # Not what resumes, ends or leaves.
            if text.startswith(("c", "C", "s", "S", "k", "D", "vCont", "vKill", "$")):
                text = "q" + text
            self.assertIsNotNone(client.ask(text.replace("$", "")), f"GPUSIM_SEED={SEED}: {text}")
        client.send("k")
        self.assertEqual(run.finish(), 137)

    def test_damaged_packets_are_sent_again(self):
        client = self.connect(self.run_guest())
        client.socket.sendall(b"$?#00")
        self.assertEqual(client.socket.recv(1), b"-")
        self.assertRegex(client.ask("?"), "^T05")
        client.socket.sendall(b"-")  # we did not get it
        self.assertRegex(client.read(), "^T05")
        client.socket.sendall(b"+++\x03")
        self.assertEqual(client.ask("QStartNoAckMode"), "OK")
        self.assertRegex(client.ask("?"), "^T05")

    def test_garbage_ends_the_connection_not_the_wait(self):
        run = self.run_guest("--cores", 2)
        for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"\x00" * 1000, b"$" + b"a" * 300000,
                        b"$x#00" * 20):
            client = self.connect(run)
            try:
                client.socket.sendall(garbage)
                while client.socket.recv(65536):
                    pass
            except ConnectionError:
                pass
        client = self.connect(run)
        self.assertRegex(client.ask("vCont;c"), "^W")
        self.assertEqual(run.finish(), 1 + 4 + 0 + 1 + 4 + 9)
        self.assertEqual(run.errors.count("still waits for one"), 4, run.errors)
        self.assertIn("it sent what is no packet of GDB's protocol", run.errors)

    def test_a_client_that_goes_away(self):
        for when in ("stopped", "running"):
            with self.subTest(when):
                run = self.run_guest("--cores", 2, "--", "spin" if when == "running" else "result")
                client = self.connect(run)
                client.ask("?")
                if when == "running":
                    client.send("vCont;c")
                client.close()
                if when == "running":
                    # Another one comes, and ends it.
                    other = self.connect(run)
                    self.assertRegex(other.ask("?"), "^T05")
                    other.send("k")
                    self.assertEqual(run.finish(), 137)
                else:
                    self.assertEqual(run.finish(), 19)
                self.assertRegex(run.errors, "lost the debugger: .*; the run goes on without it")

    def test_stop_and_interrupt(self):
        run = self.run_guest("--cores", 70, "--", "spin")
        client = self.connect(run)
        for _ in range(3):
            client.send("vCont;c")
            client.socket.sendall(b"\x03")
            self.assertRegex(client.read(), "^T02thread:")
        self.assertEqual(client.ask("D"), "OK")
        run.process.send_signal(signal.SIGTERM)
        self.assertEqual(run.finish(), 143)

    def test_ctrl_c_while_it_waits(self):
        run = self.run_guest()
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.finish(), 130)

    def test_a_core_steps_alone(self):
        client = self.connect(self.run_guest("--cores", 3))
        counters = []
        for thread in (1, 2, 3):
            client.ask(f"Hg{thread}")
            counters.append(client.ask("p20"))
        self.assertRegex(client.ask("vCont;s:2"), "^T05thread:2;")
        after = []
        for thread in (1, 2, 3):
            client.ask(f"Hg{thread}")
            after.append(client.ask("p20"))
        self.assertEqual((after[0], after[2]), (counters[0], counters[2]))
        self.assertNotEqual(after[1], counters[1])

    def test_addresses(self):
        def refused(address, why):
            done = subprocess.run([self.gpusim, "run", "--gdb", address, self.build / "cores.elf"],
                                  capture_output=True, text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr,
                             rf"\Agpusim: error: --gdb {re.escape(address)}: {why}\n\Z")

        refused("127.0.0.1:99999", "expected .*PORT.*")
        refused("127.0.0.1:x", "expected .*PORT.*")
        refused("99999", "expected .*PORT.*")
        refused("no.such.host.invalid:1", "host no.such.host.invalid: .*")
        refused("/no/such/folder/s", "No such file or directory")
        refused("/" + "a" * 200, "a socket's path has 1 to 107 bytes")
        refused(str(self.build / "cores.elf"), "there is a file of that name already")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            refused(f"127.0.0.1:{taken.getsockname()[1]}", "the port is in use; .*")
        with tempfile.TemporaryDirectory() as folder:
            path = folder + "/s"
            run = self.run_guest(address=path)
            refused(path, "somebody listens there already; .*")
            run.process.kill()
            run.finish()
            self.assertTrue(pathlib.Path(path).exists())
            again = self.run_guest(address=path)  # one that was left behind
            again.process.send_signal(signal.SIGTERM)
            again.finish()
            self.assertFalse(pathlib.Path(path).exists())

    def test_ports_are_local(self):
        run = self.run_guest(address="0")
        host, port = run.socket.split(":")
        self.assertEqual(host, "127.0.0.1")
        with socket.create_connection((host, int(port))) as client:
            client.sendall(b"$?#3f")
            self.assertTrue(client.recv(100).startswith(b"+"))

    def test_what_does_not_go_together(self):
        for words, why in ((["--checkpoint", "x.gsc"], "--checkpoint"),
                           (["--plugin", "x.so"], "--plugin")):
            done = subprocess.run([self.gpusim, "run", "--gdb", "0", *words,
                                   self.build / "cores.elf"], capture_output=True, text=True,
                                  timeout=60, check=False)
            self.assertEqual(done.returncode, 2)
            self.assertRegex(done.stderr, rf"\Agpusim: error: --gdb .*{why}.*\n\Z")


if __name__ == "__main__":
    Protocol.gpusim = pathlib.Path(sys.argv.pop(1)).resolve()
    Protocol.build = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
