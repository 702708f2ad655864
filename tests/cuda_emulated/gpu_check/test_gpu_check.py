#!/usr/bin/env python3
"""scripts/gpu-check, with executables whose device is emulated.

  test_gpu_check.py GPU_CHECK BUILD [UNITTEST ARGUMENT]...
"""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest


class GpuCheck(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        staged = subprocess.run([cls.script, "stage", "--emulated", cls.build], text=True,
                                capture_output=True)
        assert staged.returncode == 0, staged.stderr
        cls.folder = cls.build / "gpu-check"

    def check(self, steps, **environment):
        """Exit status, the summary's lines and the texts of the steps."""
        only = [word for step in steps for word in ("--only", step)]
        with tempfile.TemporaryDirectory() as results:
            done = subprocess.run([self.folder / "gpu-check", "run", *only, results], text=True,
                                  capture_output=True, env=os.environ | environment)
            texts = {p.stem: p.read_text() for p in pathlib.Path(results).glob("*.txt")}
        return done.returncode, texts.pop("summary").splitlines(), texts

    def test_what_is_staged_suffices(self):
        size = sum(p.stat().st_size for p in self.folder.rglob("*") if p.is_file())
        self.assertLess(size, 64 << 20)
        status, summary, texts = self.check(["device", "profile"])
        self.assertEqual(status, 0, texts)
        self.assertRegex(summary[0], r"^device +\d+ s  passed$")
        self.assertRegex(summary[1], r"^profile +\d+ s  (skipped|passed)$")
        self.assertIn("emulated sm_90", texts["device"])

    def test_each_aim_is_measured(self):
        steps = subprocess.run([self.script, "steps"], text=True, capture_output=True).stdout
        aims = [step for step in steps.split() if step.startswith("aim-")]
        self.assertEqual(aims, ["aim-throughput", "aim-cost", "aim-mean", "aim-cpus", "aim-energy",
                                "aim-kernel", "aim-offload"])
        # Compiled code is a minute's work for an emulated device.
        if not os.environ.get("GPUSIM_LONG"):
            aims = ["aim-throughput", "aim-kernel", "aim-offload"]
        status, summary, texts = self.check(["daemon", *aims])
        self.assertEqual(status, 0, texts)
        self.assertEqual(len(summary), len(aims) + 1)
        for name, text in texts.items():
            if name.startswith("aim-"):
                self.assertRegex(text, r"(?m)^AIM .*: (met|missed)$")
        # Each way that the driver offers, and no other.
        self.assertRegex(texts["daemon"], r"(?m)^registered: status 0$")
        self.assertRegex(texts["daemon"], r"(?m)^copied: status 0$")
        self.assertRegex(texts["daemon"], r"(?m)^pageable: the driver does not offer it$")

    def test_a_step_that_fails_shows(self):
        status, summary, texts = self.check(["device", "sanitizer"], GPUSIM_EMULATED_CHIP="none")
        self.assertEqual(status, 1)
        self.assertRegex(summary[0], r"^device +\d+ s  FAILED: status 1$")
        self.assertEqual(len(summary), 2)  # it goes on
        self.assertIn("no GPU in this machine", texts["device"])


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    for name in ("script", "build"):
        setattr(GpuCheck, name, pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
