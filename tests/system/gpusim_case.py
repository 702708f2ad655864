"""A test case that starts gpusim in a folder of its own."""
import pathlib
import subprocess
import tempfile
import unittest


class GpusimCase(unittest.TestCase):
    gpusim: pathlib.Path  # the program
    command = ()          # what stands before all other words
    timeout_s = 120

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def run_gpusim(self, *words, status=0, cwd=None):
        command = [str(self.gpusim), *self.command, *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=self.timeout_s,
                              check=False, cwd=cwd or self.folder)
        self.assertEqual(done.returncode, status, f"{command}\n{done.stdout}{done.stderr}")
        return done
