#!/usr/bin/env python3
"""gpusim self-test, and what --backend auto makes of it, on a sound device and on faulty ones.

  test_self_test.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...

GPUSIM has the faults of tests/cuda_emulated/faults.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

CC = ["/usr/bin/aarch64-linux-gnu-gcc", "-nostdlib", "-static", "-x", "assembler", "-"]
PROGRAM = ".global _start\n_start: mov x0, #0\nmov x8, #93\nsvc #0\n"  # exit(0)
SOUND, DEADLOCK, STARVES, HANGS, MISCOUNTS = 0, 1, 3, 4, 5


class SelfTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.build.mkdir(parents=True, exist_ok=True)
        cls.program = cls.build / "exit.elf"
        subprocess.run([*CC, "-o", cls.program], input=PROGRAM, text=True, check=True)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = pathlib.Path(folder.name)

    def gpusim_run(self, fault, *words, **environment):
        usual = {"XDG_CACHE_HOME": str(self.cache), "GPUSIM_EMULATED_FAULT": str(fault)}
        return subprocess.run([self.gpusim, *map(str, words)], capture_output=True, text=True,
                              timeout=300, env=os.environ | usual | environment)

    def self_test(self, fault, *words, **environment):
        done = self.gpusim_run(fault, "self-test", *words, **environment)
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout

    def automatic(self, fault, cores=16384, **environment):
        """The backend that `auto` takes, and what it notes."""
        stats = self.cache / "stats.json"
        done = self.gpusim_run(fault, "run", "--cores", cores, "--memory-size", "1M",
                               "--stack-size",
                               "4K", "--stats", stats, self.program, **environment)
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        *notes, summary = done.stderr.splitlines(keepends=True)
        self.assertRegex(summary, rf"^{cores:,} cores on ")
        return json.loads(stats.read_text())["backend"], "".join(notes)

    def files(self):
        return sorted((self.cache / "gpusim").glob("*"))

    def test_a_sound_device(self):
        self.assertIn("self-test not run yet", self.gpusim_run(SOUND, "info").stdout)
        status, said = self.self_test(SOUND)
        self.assertEqual(status, 0)
        self.assertRegex(said, r"^device 0: emulated sm_90.*: passed in [0-9.]+ s\n$")
        self.assertIn("; self-test passed", self.gpusim_run(SOUND, "info").stdout)
        self.assertEqual(len(self.files()), 1)
        # What is known is not found out again: a device that fails now would fail the test.
        self.assertEqual(self.automatic(SOUND), ("cuda", ""))
        self.assertEqual(self.automatic(SOUND, 16383), ("simd", ""))

    def test_what_cannot_be_read_is_found_out_again(self):
        self.assertEqual(self.automatic(SOUND), ("cuda", ""))  # nothing was known
        (file,) = self.files()
        sound = file.read_text()
        for spoiled in ("", "x", "[1]", sound[:20], sound.replace("CUDA driver", "driver"),
                        sound.replace("true", "1")):
            file.write_text(spoiled)
            self.assertIn("self-test not run yet", self.gpusim_run(SOUND, "info").stdout)
        self.assertEqual(self.automatic(SOUND), ("cuda", ""))
        self.assertEqual(file.read_text(), sound)
        self.assertEqual(self.files(), [file])

    def test_without_a_cache_folder(self):
        for where in ({"XDG_CACHE_HOME": "/dev/null/x"},
                      {"XDG_CACHE_HOME": "relative", "HOME": ""}):
            status, _ = self.self_test(SOUND, **where)
            self.assertEqual(status, 0)
            self.assertIn("self-test not run yet", self.gpusim_run(SOUND, "info", **where).stdout)

    def test_faulty_devices(self):
        for fault, why in [(DEADLOCK, r"kernel simulate, block \d+, warp \d+: deadlock: "),
                           (STARVES, "a lock whose takers spin, 3 cores: core [0-2]: "),
                           (MISCOUNTS, "values, 1 cores: core 0: .* counted wrongly")]:
            with self.subTest(fault=fault):
                status, said = self.self_test(fault)
                self.assertEqual(status, 1)
                self.assertRegex(said, f"^device 0: emulated sm_90.*: failed: .*{why}")
                self.assertRegex(self.gpusim_run(fault, "info").stdout,
                                 f"; self-test failed: .*{why}")
                backend, note = self.automatic(fault)
                self.assertEqual(backend, "simd")
                self.assertRegex(note,
                                 "^gpusim: note: GPU 0, emulated .* is not used: its self-test "
                                       f"failed: .*{why}.*gpusim self-test runs it again")

    def test_a_kernel_that_does_not_end(self):
        status, said = self.self_test(HANGS, "--timeout", 2)
        self.assertEqual(status, 1)
        self.assertRegex(said, "^device 0: emulated sm_90.*: failed: it did not end within 2 s\n$")

    def test_only_what_is_asked_for(self):
        chips = {"GPUSIM_EMULATED_CHIP": "sm_90,sm_75,sm_90"}
        status, said = self.self_test(SOUND, "--device", 2, **chips)
        self.assertEqual((status, len(said.splitlines()), said[:10]), (0, 1, "device 2: "))
        refused = self.gpusim_run(SOUND, "self-test", "--device", 1, **chips)
        self.assertEqual((refused.returncode, refused.stdout), (2, ""))
        self.assertIn("no machine code", refused.stderr)
        self.assertEqual(self.gpusim_run(SOUND, "self-test", GPUSIM_EMULATED_CHIP="none").stderr,
                         "gpusim: error: --devices all: no GPU in this machine\n")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for name in ("gpusim", "build"):
        setattr(SelfTest, name, pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
