"""A test case that runs devices/own.c, whose cores share nothing, on devices that are emulated."""

import os
import pathlib
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
CC = ["/usr/bin/aarch64-linux-gnu-gcc", "-O1", "-g", "-static"]
# Not the run's, but this machine's.
NOT_COMPARED = {"seconds", "mips", "backend", "device", "divergence"}


class OwnProgram(unittest.TestCase):
    """Has `program`, and a `folder` per test; `gpusim` and `build` are set before it runs."""
    @classmethod
    def setUpClass(cls):
        cls.build.mkdir(parents=True, exist_ok=True)
        elf, cls.program = cls.build / "own.elf", cls.build / "own.gsm"
        subprocess.run([*CC, HERE / "devices/own.c", "-o", elf], check=True)
        subprocess.run([cls.gpusim, "translate", elf, "-o", cls.program], check=True,
                       capture_output=True)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def gpusim_run(self, chips, *words, **environment):
        return subprocess.run([self.gpusim, *map(str, words)], capture_output=True, text=True,
                              timeout=300, cwd=self.folder,
                              env=os.environ | {"GPUSIM_EMULATED_CHIP": chips} | environment)
