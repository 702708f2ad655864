#!/usr/bin/env python3
"""What sockets and shared mappings of a guest reach outside of it, and what they do not.

  test_sockets.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...
"""

import array
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

HERE = pathlib.Path(__file__).resolve().parent
CC = ["/usr/bin/aarch64-linux-gnu-gcc", "-O1", "-static", "-pthread"]
BACKENDS = ["simd", "scalar"]
REFUSED = "Permission denied"


class Sockets(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.build.mkdir(parents=True, exist_ok=True)
        cls.elf = cls.build / "guests.elf"
        subprocess.run([*CC, HERE / "guests.c", "-o", cls.elf], check=True)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def guest(self, *words, options=(), backend="simd", cores=4, oracle=False):
        command = (["/usr/bin/qemu-aarch64", self.elf] if oracle else
                   [self.gpusim, "run", "--cores", cores, "--backend", backend, *options, self.elf,
                    "--"])
        return subprocess.run([*map(str, command), *map(str, words)], capture_output=True,
                              text=True,
                              timeout=120, cwd=self.folder)

    def test_no_network_unless_asked_for(self):
        done = self.guest("kinds")
        self.assertEqual(done.stdout.splitlines(), [
            f"inet: {REFUSED}", f"inet6: {REFUSED}", f"raw: {REFUSED}",
            "netlink: Address family not supported by protocol",
            "packet: Address family not supported by protocol",
            f"abstract: {REFUSED}", f"automatic: {REFUSED}"], done.stderr)
        self.assertRegex(done.stderr, "no network; --network loopback or --network host")

    def test_raw_sockets_never(self):
        for network in ("loopback", "host"):
            done = self.guest("kinds", options=["--network", network])
            self.assertEqual(done.stdout.splitlines()[:5], [
                "inet: ok", "inet6: ok", "raw: Operation not permitted",
                "netlink: Address family not supported by protocol",
                "packet: Address family not supported by protocol"], done.stderr)

    def test_tcp_through_the_loopback(self):
        for backend in BACKENDS:
            done = self.guest("tcp", options=["--network", "loopback"], backend=backend)
            self.assertEqual(done.returncode, 0, done.stderr)
            # Nothing listens to the world: "any" address is the loopback's.
            # Server and client print beside each other.
            self.assertEqual(sorted(done.stdout.splitlines()), sorted([
                "bind: ok", "listen: ok", "at 127.0.0.1", "accept: ok", "read: ok",
                "server got ping from a family 2, 16 bytes", "write: ok", "client got pong",
                "end: ok",
                "refused: Connection refused", "listen: ok", "at 127.0.0.1"]))

    def test_the_hosts_network_is_as_natively(self):
        done = self.guest("tcp", options=["--network", "host"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.splitlines()),
                         sorted(self.guest("tcp", oracle=True).stdout.splitlines()))

    def test_udp_through_the_loopback(self):
        done = self.guest("udp", options=["--network", "loopback"])
        self.assertEqual(done.stdout.splitlines(), [
            "bind: ok", "at 127.0.0.1", "sendto: ok", "at 127.0.0.1", "recvfrom: ok", "answer: ok",
            "recv: ok", "hello"], done.stderr)

    def test_the_loopback_leads_nowhere_else(self):
        done = self.guest("outside", options=["--network", "loopback"])
        far = "Network is unreachable"
        self.assertEqual(done.stdout.splitlines(), [
            f"connect: {far}", f"bind: {far}", f"sendto: {far}", f"sendmsg: {far}",
            "no family: Address family not supported by protocol", f"mapped: {far}", f"six: {far}",
            "option: Protocol not available", "device: Protocol not available"], done.stderr)
        self.assertRegex(done.stderr, "no other host; --network host")

    def test_named_sockets_obey_root(self):
        inside, outside = self.folder / "inside", self.folder / "outside"
        inside.mkdir()
        outside.mkdir()
        paths = [inside / "s", outside / "s"]
        done = self.guest("named", *paths, options=["--root", inside])
        lines = done.stdout.splitlines()
        # The folder may be read, so that it lacks the name is no secret.
        self.assertEqual(lines[-2:], [f"elsewhere: {REFUSED}",
                                      "connect elsewhere: No such file or directory"],
                         done.stdout + done.stderr)
        self.assertEqual(list(outside.iterdir()), [])
        self.assertTrue((inside / "s").is_socket())
        for path in inside.iterdir():
            path.unlink()
        expected = self.guest("named", *paths, oracle=True).stdout.splitlines()
        self.assertEqual(sorted(lines[:-2]), sorted(expected[:-2]))
        # Nor through a link.
        (inside / "link").symlink_to(outside)
        done = self.guest("named", inside / "link" / "s", outside / "s", options=["--root", inside])
        self.assertRegex(done.stdout, rf"\Abind: {REFUSED}")

    def test_a_file_from_another_process(self):
        path = self.folder / "server"
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            server.listen()
            (self.folder / "sent").write_text("what the file holds")

            def serve():
                peer, _ = server.accept()
                with peer, open(self.folder / "sent") as sent:
                    peer.sendmsg([b"here"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                              array.array("i", [sent.fileno()]))])
            thread = threading.Thread(target=serve, daemon=True)
            thread.start()
            done = self.guest("file", path, options=["--root", self.folder])
            thread.join(30)
        self.assertEqual(done.stdout.splitlines(),
                         ["connect: ok", "recvmsg: ok", "read: ok", "what the file holds"],
                         done.stderr)

    def test_waiting_for_each_other_is_a_deadlock(self):
        for backend in BACKENDS:
            done = self.guest("wait", backend=backend)
            self.assertEqual(done.returncode, 125, done.stderr)
            self.assertRegex(done.stderr, r"deadlock: 2 of 2 cores")

    def test_waiting_for_a_timer_is_none(self):
        for backend in BACKENDS:
            done = self.guest("wait", "timer", backend=backend)
            self.assertEqual((done.returncode, done.stdout), (0, "1 event\n"), done.stderr)

    def test_stores_reach_the_file(self):
        path = self.folder / "mapped"
        for backend in BACKENDS:
            path.unlink(missing_ok=True)
            done = self.guest("mapping", path, "write", options=["--root", self.folder],
                              backend=backend)
            self.assertEqual(done.stdout, "mmap: ok\nacross two pages\n"
                             f"no right: {REFUSED}\nwrite: {REFUSED}\n", done.stderr)
            self.assertEqual(path.read_bytes()[4090:4106], b"across two pages")

    def test_a_file_cut_short_is_a_bus_error(self):
        path = self.folder / "mapped"
        for backend in BACKENDS:
            done = self.guest("mapping", path, "cut", options=["--root", self.folder],
                              backend=backend)
            self.assertEqual(done.returncode, 128 + 7, done.stderr)
            done = self.guest("mapping", path, "handled", options=["--root", self.folder],
                              backend=backend)
            self.assertEqual((done.returncode, done.stdout),
                             (0, "mmap: ok\nsignal 7 code 2, in the mapping 1\ngrows: ok\npread: "
                                 "ok\nx\n"),
                             done.stderr)

    def test_private_machines_say_that_they_map_nothing_shared(self):
        done = self.guest("mapping", self.folder / "mapped", "write",
                          options=["--root", self.folder, "--memory", "private"], cores=1)
        self.assertEqual(done.stdout, "mmap: No such device\n")
        self.assertRegex(done.stderr, "shared writable file mappings need --memory shared")

    def test_checkpoints_say_what_they_cannot_hold(self):
        for what, name in (("socket", "a socket"), ("eventfd", "eventfd"), ("timerfd", "timerfd"),
                           ("epoll", "epoll|eventfd"), ("memfd", "memfd"), ("ipc", "System V IPC"),
                           ("mapping", "mapped shared")):
            with self.subTest(what):
                done = self.guest("hold", what, options=["--checkpoint", self.folder / "c.gsc",
                                                         "--checkpoint-every", "1000000"])
                self.assertEqual((done.returncode, done.stdout), (0, "done\n"), done.stderr)
                self.assertRegex(done.stderr, f"no checkpoint: .*({name})")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    Sockets.gpusim = pathlib.Path(sys.argv.pop(1)).resolve()
    Sockets.build = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
