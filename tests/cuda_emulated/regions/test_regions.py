#!/usr/bin/env python3
"""Compiled regions with what else a run may be asked for: the same as on backend scalar.

  test_regions.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...
"""

import json
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from own_program import NOT_COMPARED, OwnProgram  # noqa: E402

STOPPED, REACHED_LIMIT = 123, 124  # docs/cli.md: --checkpoint-stop, --max-instructions
# Processes whose course nothing changes: counts of each core are the same everywhere.
PRIVATE = ["--memory", "private", "--cores", 12, "--memory-size", "1M", "--stack-size", "64K"]
SHORT = ["--slice", 2000]  # so that what is hot shows


class Regions(OwnProgram):
    def gpusim_run(self, *words, least=0, chips="sm_90"):
        """The process fails if regions execute less than `least` instructions."""
        return super().gpusim_run(chips, *words, GPUSIM_EMULATED_REGIONS_LEAST=str(least))

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
