#!/usr/bin/env python3
"""Compiled regions with what else a run may be asked for: the same as on backend scalar.

  test_regions.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
CC = ["/usr/bin/aarch64-linux-gnu-gcc", "-O1", "-g", "-static"]
STOPPED, REACHED_LIMIT = 123, 124  # docs/cli.md: --checkpoint-stop, --max-instructions
# Not the run's, but this machine's.
NOT_COMPARED = {"seconds", "mips", "backend", "device", "divergence"}
# Processes whose course nothing changes: counts of each core are the same everywhere.
PRIVATE = ["--memory", "private", "--cores", 12, "--memory-size", "1M", "--stack-size", "64K"]
SHORT = ["--slice", 2000]  # so that what is hot shows


class Regions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.build.mkdir(parents=True, exist_ok=True)
        elf, cls.program = cls.build / "own.elf", cls.build / "own.gsm"
        subprocess.run([*CC, HERE.parent / "devices/own.c", "-o", elf], check=True)
        subprocess.run([cls.gpusim, "translate", elf, "-o", cls.program], check=True,
                       capture_output=True)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def gpusim_run(self, *words, least=0, chips="sm_90"):
        """The process fails if regions execute less than `least` instructions."""
        return subprocess.run([self.gpusim, *map(str, words)], capture_output=True, text=True,
                              timeout=300, cwd=self.folder,
                              env=os.environ | {"GPUSIM_EMULATED_CHIP": chips,
                                                "GPUSIM_EMULATED_REGIONS_LEAST": str(least)})

    def results(self, backend, *options, least=0, chips="sm_90"):
        stats = self.folder / "stats.json"
        done = self.gpusim_run("run", "--quiet", "--stats", stats, "--per-core",
                               *(["--backend", backend] if backend else []), *options,
                               self.program, least=least, chips=chips)
        counts = {k: v for k, v in json.loads(stats.read_text()).items() if k not in NOT_COMPARED}
        return done.returncode, done.stderr, sorted(done.stdout.splitlines()), counts

    def test_the_option_says_whether(self):
        want = self.results("scalar", *PRIVATE)
        for word, least in [("off", 0), ("wait", 100_000)]:
            with self.subTest(word=word):
                options = [*PRIVATE, *SHORT, "--compiled-regions", word]
                self.assertEqual(self.results("cuda", *options, least=least), want)
        done = self.gpusim_run("run", "--backend", "cuda", "--compiled-regions", "off", *PRIVATE,
                               self.program, least=1)
        self.assertEqual(done.returncode, 1)
        self.assertIn("regions were entered 0 times", done.stderr)
        done = self.gpusim_run("run", "--compiled-regions", "maybe", self.program)
        self.assertEqual(done.returncode, 2)
        self.assertIn("maybe not in {off,on,wait}", done.stderr)
        done = self.gpusim_run("run", "--backend", "simd", "--compiled-regions", "on", *PRIVATE,
                               self.program)
        self.assertIn("--compiled-regions is for backend cuda; backend simd goes on without",
                      done.stderr)

    def test_seeds(self):
        want = self.results("scalar", *PRIVATE)
        self.assertEqual(self.results("cuda", *PRIVATE, *SHORT, "--seed", 2026, least=50_000), want)

    def test_limits_of_instructions(self):
        options = [*PRIVATE, "--max-instructions", 60_011]
        want = self.results("scalar", *options)
        self.assertEqual(want[0], REACHED_LIMIT)
        self.assertEqual(self.results("cuda", *options, *SHORT, least=50_000), want)

    def test_checkpoints(self):
        want = self.results("scalar", *PRIVATE)
        file = self.folder / "run.gsc"
        for before, after in [("cuda", "scalar"), ("scalar", "cuda")]:
            with self.subTest(before=before, after=after):
                done = self.gpusim_run("run", "--quiet", "--backend", before, *PRIVATE, *SHORT,
                                       "--stats", "before.json", "--per-core",
                                       "--checkpoint", file, "--checkpoint-every", 900_000,
                                       "--checkpoint-stop", self.program,
                                       least=1 if before == "cuda" else 0)
                self.assertEqual((done.returncode, done.stderr), (STOPPED, ""))
                got = self.results(after, "--resume", file, *SHORT,
                                   least=1 if after == "cuda" else 0)
                lines = sorted(done.stdout.splitlines() + got[2])
                self.assertEqual((*got[:2], lines, got[3]), want)

    def test_several_devices(self):
        options = [70 if word == 12 else word for word in PRIVATE]
        want = self.results("scalar", *options)
        self.assertEqual(self.results("", "--devices", "all", *options, *SHORT, least=100_000,
                                      chips="sm_90,sm_90"), want)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for name in ("gpusim", "build"):
        setattr(Regions, name, pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
