"""What both tests of `gpusim sweep` share: guests, and a way to run it."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "differential" / "qemu"))
import harness  # noqa: E402

CROSS = "/usr/bin/aarch64-linux-gnu-gcc"
BARE = ["-static", "-nostdlib", "-ffreestanding", "-fno-pie", "-no-pie", "-fno-stack-protector"]
SPREAD = ["--entry", "spread", "--arg", "@core", "--arg", "@cores", "--arg", "65536", "--arg",
          "100"]


class SweepCase(unittest.TestCase):
    gpusim: pathlib.Path
    build: pathlib.Path

    @classmethod
    def setUpClass(cls):
        cls.build.mkdir(parents=True, exist_ok=True)
        harness.build_all({"sweep.elf": [CROSS, "-O1", "-g", *BARE, "-Wl,--entry=spread",
                                         HERE / "guests.c"]},
                          harness.compiler_version(CROSS), cls.build, os.cpu_count())
        cls.guest = cls.build / "sweep.elf"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.out = self.folder / "out"

    def command(self, *words):
        return [str(self.gpusim), "sweep", *map(str, words)]

    def sweep(self, *words, status=0):
        done = subprocess.run(self.command(*words), capture_output=True, text=True, timeout=240,
                              check=False, cwd=self.folder)
        self.assertEqual(done.returncode, status, f"{words}\n{done.stdout}{done.stderr}")
        return done

    def refused(self, *words):
        done = self.sweep(*words, status=2)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"\Agpusim: error: [^\n]+\n\Z")
        return done.stderr


def main(case):
    if len(sys.argv) < 3:
        sys.exit(f"usage: {sys.argv[0]} GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...")
    case.gpusim, case.build = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
