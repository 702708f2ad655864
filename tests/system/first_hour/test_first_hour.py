#!/usr/bin/env python3
"""What somebody meets in the first hour: summaries, progress, notes, `run --config`.

  test_first_hour.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...
"""
import fcntl
import json
import os
import pathlib
import pty
import re
import struct
import subprocess
import sys
import termios
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE.parents[1] / "differential" / "qemu"))
import harness  # noqa: E402
from gpusim_case import GpusimCase  # noqa: E402

CROSS = "/usr/bin/aarch64-linux-gnu-gcc"
BARE = ["-static", "-nostdlib", "-ffreestanding", "-fno-pie", "-no-pie", "-fno-stack-protector",
        "-mno-outline-atomics"]
HELLO = """#include <stdio.h>
int main(int c, char** v) { printf("%d%s\\n", c, c > 1 ? v[1] : ""); return 0; }
"""


class FirstHour(GpusimCase):
    build: pathlib.Path

    @classmethod
    def setUpClass(cls):
        cls.build.mkdir(parents=True, exist_ok=True)
        (cls.build / "hello.c").write_text(HELLO)
        harness.build_all(
            {"guests.elf": [CROSS, "-O1", "-g", *BARE, "-Wl,--entry=spin", HERE / "guests.c"],
             "hello.elf": [CROSS, "-O1", "-static", cls.build / "hello.c"]},
            harness.compiler_version(CROSS), cls.build, os.cpu_count())
        cls.guests = cls.build / "guests.elf"
        cls.hello = cls.build / "hello.elf"

    def on_terminal(self, *words, columns):
        """What gpusim writes to a terminal of this width as standard error."""
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        process = subprocess.Popen([str(self.gpusim), "run", *map(str, words)],
                                   stdout=subprocess.DEVNULL, stderr=follower, cwd=self.folder)
        os.close(follower)
        text = b""
        while True:
            try:
                piece = os.read(leader, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            text += piece
        os.close(leader)
        self.assertEqual(process.wait(timeout=self.timeout_s), 0, text)
        # A slow machine may have shown progress before.
        return text.decode().replace("\r\n", "\n").split("\x1b[K")[-1].lstrip("\r")

    # Summaries, progress, notes

    def test_a_piped_run_says_what_it_did(self):
        done = self.run_gpusim("run", self.guests, "--entry", "spin", "--arg", "1000",
                               "--cores", "2000")
        self.assertRegex(done.stderr, r"\A2,000 cores on \w+ \([^\n]+\): \d{1,3}(,\d{3}){2,} "
                                      r"guest instructions in \d+\.\d+ s, [\d,.]+ MIPS\n\Z")
        self.assertEqual(done.stdout, "")
        quiet = self.run_gpusim("run", self.guests, "--entry", "spin", "--arg", "100", "--quiet")
        self.assertEqual(quiet.stderr, "")

    def test_a_summary_keeps_to_the_terminal(self):
        words = (self.guests, "--entry", "spin", "--arg", "1000", "--cores", "64")
        text = self.on_terminal(*words, columns=40)
        self.assertLessEqual(max(map(len, text.splitlines())), 40)
        self.assertGreater(len(text.splitlines()), 2)
        wide = self.on_terminal(*words, columns=200)
        self.assertEqual(len(wide.splitlines()), 1)
        self.assertEqual(text.split(":")[0].split(), wide.split(":")[0].split())

    def test_progress_says_how_long_it_has_been(self):
        words = (self.guests, "--entry", "spin", "--arg", "100000000000", "--cores", "2",
                 "--max-instructions", "600000000", "--backend", "scalar")
        leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 150, 0, 0))
        with subprocess.Popen([str(self.gpusim), "run", *map(str, words)],
                              stdout=subprocess.DEVNULL, stderr=follower) as process:
            os.close(follower)
            text = b""
            try:
                while not re.search(rb"MIPS, \d+ s, at most \d+ .* left", text):
                    text += os.read(leader, 4096)
            except OSError:
                self.fail(f"no line with time: {text}")
            finally:
                process.kill()
        os.close(leader)
        self.assertRegex(text.decode(), r"0 of 2 cores finished, [\d.]+ M instructions, \d+ MIPS, ")

    def test_work_of_one_core_among_many_is_remarked(self):
        alone = self.run_gpusim("run", self.hello, "--cores", "4")
        self.assertIn("note: one of 4 cores worked", alone.stderr)
        self.assertIn("--start all", alone.stderr)
        for words in (("--cores", "1"), ("--cores", "4", "--start", "all")):
            done = self.run_gpusim("run", self.hello, *words)
            self.assertNotIn("worked", done.stderr)

    def test_a_timeline_shows_barriers(self):
        self.run_gpusim("run", self.guests, "--entry", "barriers", "--arg", "@core", "--arg",
                        "@cores", "--arg", "20", "--cores", "64", "--timeline", "t.json",
                        "--quiet")
        events = json.loads((self.folder / "t.json").read_text())["traceEvents"]
        shares = [e["args"]["waiting"] + e["args"]["diverged"] for e in events
                  if e["ph"] == "C" and e["name"] == "cores, %"]
        # Busy before each barrier, and waiting at it: up and down again.
        turns = sum((a < 50) != (b < 50) for a, b in zip(shares, shares[1:]))
        self.assertGreater(len(shares), 40)
        self.assertGreater(turns, 10, shares)

    def test_profile_and_timeline_have_the_same_cycles(self):
        words = ("run", self.guests, "--entry", "spin", "--arg", "1000", "--quiet")
        self.run_gpusim(*words, "--energy", "et-soc1,cortex-a7", "--profile=p.json",
                        "--timeline", "t.json")
        profile = json.loads((self.folder / "p.json").read_text())
        timeline = json.loads((self.folder / "t.json").read_text())
        self.assertIn("et-soc1", profile["cycle_table"]["name"])
        self.assertIn(profile["cycle_table"]["name"], timeline["otherData"]["time"])
        self.run_gpusim(*words, "--energy", "et-soc1", "--timing", "cortex-a7",
                        "--profile=p.json")
        profile = json.loads((self.folder / "p.json").read_text())
        self.assertIn("cortex-a7", profile["cycle_table"]["name"])

    # gpusim run --config

    def config(self, name, text):
        (self.folder / name).write_text(text)
        return name

    def refused(self, *words):
        done = self.run_gpusim(*words, status=2)
        self.assertRegex(done.stderr, r"\Agpusim: error: [^\n]+\n\Z")
        return done.stderr

    def test_a_file_stands_for_the_command_line(self):
        call = f'program = "{self.guests}"\nentry = "barriers"\narg = ["@core", "@cores", 3]\n'
        toml = self.config("run.toml", f'{call}cores = 8\nquiet = true\nper-core = false\n'
                                       'stats = "s.json"\n# end\n')
        self.run_gpusim("run", "--config", toml)
        stats = json.loads((self.folder / "s.json").read_text())
        self.assertEqual(stats["cores"], 8)
        direct = self.run_gpusim("run", self.guests, "--entry", "barriers", "--arg", "@core",
                                 "--arg", "@cores", "--arg", "3", "--cores", "8", "--quiet",
                                 "--stats", "d.json")
        self.assertEqual(direct.stdout, "")
        self.assertEqual(stats.keys(), json.loads((self.folder / "d.json").read_text()).keys())
        self.run_gpusim("run", "--config", toml, "--cores", "4")  # these go before it
        self.assertEqual(json.loads((self.folder / "s.json").read_text())["cores"], 4)

    def test_json_and_arguments_of_the_guest(self):
        file = self.config("run.json", json.dumps(
            {"program": str(self.hello), "args": ["x y", "z"], "quiet": True}))
        self.assertEqual(self.run_gpusim("run", "--config", file).stdout, "3x y\n")
        self.assertEqual(self.run_gpusim("run", "--config", file, "--", "w").stdout, "2w\n")

    def test_mistakes_in_the_file_are_named(self):
        for name, text, words in (
                ("a.toml", "cores = 4\n\ncrores = 8\n", ["a.toml: line 3: crores", "cores?"]),
                ("a.json", '{\n "cores": 4,\n "a": {\n }\n}', ["a.json: line 3: a"]),
                ("b.json", '{\n\n "backnd": "simd"}', ["b.json: line 3: backnd", "backend?"]),
                ("b.toml", "cores = 0\n", ["b.toml: line 1: cores"]),
                ("c.toml", 'cores = "many"\n', ["c.toml: line 1: cores"]),
                ("d.toml", "cores = \n", ["d.toml: line 1, column"]),
                ("e.toml", 'quiet = "perhaps"\n', ["e.toml: line 1: quiet", "true or false"]),
                ("f.toml", "cores = 1\n[cores]\n", ["f.toml: line 2"]),
                ("g.toml", "\nconfig = \"g.toml\"\n", ["g.toml: line 2: config"]),
                ("h.toml", "\n[profile]\na = 1\n", ["h.toml: line 2: profile", "expected a text"]),
                ("i.json", '["cores"]', ["i.json: expected an object"])):
            with self.subTest(file=name):
                message = self.refused("run", "--config", self.config(name, text), self.hello)
                for word in words:
                    self.assertIn(word, message)
        self.assertIn("none.toml", self.refused("run", "--config", "none.toml", self.hello))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(f"usage: {sys.argv[0]} GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...")
    FirstHour.gpusim, FirstHour.build = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
