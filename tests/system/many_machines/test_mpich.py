#!/usr/bin/env python3
"""Studies under Hydra, the mpiexec of MPICH, as under Open MPI's mpirun (docs/many-machines.md).

  test_mpich.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...
Exit status 77 where there is no mpiexec.hydra.
"""
import os
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
import test_mpi  # noqa: E402
from shared_study import main  # noqa: E402


class Mpich(test_mpi.Mpi):
    launcher = ["mpiexec.hydra"]

    @classmethod
    def setUpClass(cls):
        super(test_mpi.Mpi, cls).setUpClass()

    def sessions(self):
        return {card["session"] for card in self.cards()}

    def test_launches_are_told_apart(self):
        """Traces of the former launch's rank 0 must not let rank 1 of the next one begin."""
        study = self.study(steps=1000)
        self.run_ranks(*study, "-o", self.out)
        first = self.sessions()
        self.run_ranks(*study, "-o", self.out, "--restart")
        second = self.sessions()
        self.assertEqual((len(first), len(second)), (1, 1), (first, second))
        self.assertNotEqual(first, second)
        self.assertRegex(first.pop(), r"\Apmi-\w[\w-]+\Z")

    def test_parts_of_a_run(self):
        self.run_parts()
        names = sorted(p.name for p in self.folder.glob("s-*.json"))
        self.assertEqual(names, [f"s-{k}-of-3.json" for k in (1, 2, 3)])

    def run_parts(self):
        words = [*self.launcher, "-n", "3", self.gpusim, "run", self.guest, "--entry", "few",
                 "--arg", "@core", "--arg", "@cores", "--arg", "1000", "--cores", "192",
                 "--memory", "private", "--part", "auto", "--stats", "s-{part}.json", "--quiet"]
        done = subprocess.run([str(w) for w in words], capture_output=True, text=True, timeout=60,
                              check=False, cwd=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_z_a_folder_that_is_not_shared(self):
        """That needs a second machine; here: a launch that nobody knows."""
        for more, says in (({}, "PMI_FD is missing"), ({"PMI_FD": "0"}, "does not answer")):
            variables = dict(os.environ, PMI_RANK="1", PMI_SIZE="2", MPI_LOCALNRANKS="1", **more)
            done = subprocess.run(self.command(*self.study(cores="1"), "-o", self.out),
                                  env=variables, capture_output=True, text=True, check=False,
                                  timeout=60, cwd=self.folder, stdin=subprocess.DEVNULL)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr,
                             rf"\Agpusim: error: this is rank 1 of 2, .*{says}.*--join")
            self.assertFalse(self.out.exists())


if __name__ == "__main__":
    if not shutil.which("mpiexec.hydra"):
        print("no mpiexec.hydra (mpich)")
        sys.exit(77)
    main(Mpich)
