#!/usr/bin/env python3
"""Studies under Open MPI's mpirun (docs/many-machines.md).

  test_mpi.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...
Exit status 77 where there is no mpirun.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from shared_study import SharedStudyCase, main  # noqa: E402

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe"]


def rank(number, **more):
    """As mpirun on two machines would have it for a process on each."""
    return dict(os.environ, OMPI_COMM_WORLD_RANK=str(number), OMPI_COMM_WORLD_SIZE="2",
                OMPI_COMM_WORLD_LOCAL_SIZE="1", PMIX_NAMESPACE="1234", **more)


class Mpi(SharedStudyCase):
    launcher = MPIRUN

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # A folder that is not shared: takes as long as ranks wait for each other.
        own = tempfile.TemporaryDirectory()
        cls.addClassCleanup(own.cleanup)
        cls.apart = subprocess.Popen(
            [cls.gpusim, "sweep", cls.guest, "--cores", "1", "-o", "mine"], env=rank(1), text=True,
            stderr=subprocess.PIPE, cwd=own.name)
        cls.addClassCleanup(cls.apart.kill)

    def mpirun(self, *words, ranks=3):
        return [*self.launcher, "-n", str(ranks), *self.command(*words)]

    def run_ranks(self, *words, status=0, ranks=3):
        done = subprocess.run(self.mpirun(*words, ranks=ranks), capture_output=True, text=True,
                              timeout=120, check=False, cwd=self.folder)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done

    def claims(self):
        return [p.read_text().split("\n")[0] for p in (self.out / "claims").glob("*-simd-*")]

    def test_three_ranks(self):
        study = self.study()
        done = self.run_ranks(*study, "-o", self.out)
        self.assertEqual(done.stdout.count("page: "), 1, done.stdout)
        self.assertGreater(len(set(self.claims())), 1)  # the work was shared,
        self.assertEqual(len(self.claims()), 10)        # and nothing was done twice
        self.assertEqual({c["name"] for c in self.cards()}, {f"rank {n} of 3" for n in range(3)})
        self.same_as_on_one_machine(*study)
        before = self.stamps()
        self.assertIn("(0 ran now)", self.run_ranks(*study, "-o", self.out).stdout)
        self.assert_kept(before)

    def test_a_rank_that_dies(self):
        # Long points: mpirun lets others work for a second before it ends them.
        study = self.study(steps=100000000)
        with subprocess.Popen(self.mpirun(*study, "-o", self.out), cwd=self.folder,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            self.kill_while_it_runs(1, at_least=2)
            self.assertNotEqual(process.wait(timeout=60), 0)  # mpirun ends all others
        before = self.stamps()
        self.assertIn(len(before), range(2, 10))
        self.assertFalse((self.out / "results.csv").exists())
        done = self.run_ranks(*study, "-o", self.out)
        self.assertRegex(done.stdout, r"10 points \(\d ran now\), 0 failed")
        self.assert_kept(before)
        self.same_as_on_one_machine(*study)

    def test_points_that_fail_end_no_other_rank(self):
        words = [self.guest, "--entry", "few", "--arg", "@core", "--arg", "@cores", "--arg", "4",
                 "--cores", "1..32", "-o", self.out]
        done = self.run_ranks(*words, status=1)
        self.assertRegex(done.stdout, r"6 points \(\d ran now\), 3 failed")
        results = json.loads((self.out / "results.json").read_text())
        self.assertEqual([f["cores"] for f in results["failures"]], [8, 16, 32])
        stamps = self.stamps()
        self.run_ranks(*words, status=1)
        self.assert_kept(stamps)
        # Each is run once more, by one rank.
        done = self.run_ranks(*words, "--retry", status=1)
        self.assertEqual(done.stderr.count("(simd): core 1: fault"), 3, done.stderr)
        again = [p for p in self.points() if p.stat().st_mtime_ns != stamps[p]]
        self.assertEqual(len(again), 3)

    def test_ranks_with_different_studies(self):
        one, two = (self.command(*self.study(cores=n), "-o", self.out) for n in ("1", "2"))
        done = subprocess.run([*self.launcher, "-n", "1", *one, ":", "-n", "1", *two], text=True,
                              cwd=self.folder, capture_output=True, timeout=60, check=False)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("was asked for another study than the one that others run", done.stderr)

    def test_machines_that_differ(self):
        """Another program's file, another gpusim, as a second machine might have."""
        program = self.folder / "p.elf"
        shutil.copy(self.guest, program)
        study = [program, *self.study()[1:], "-o", self.out]
        self.sweep(*study)
        join = ["--join", self.out]
        program.write_bytes(program.read_bytes() + b"\0")
        self.assertRegex(self.refused(*join), r"the program of p, p\.elf|/p\.elf, is another file")
        program.unlink()
        self.assertIn("p.elf", self.refused(*join))
        shutil.copy(self.guest, program)
        self.sweep(*join)
        other = self.folder / "gpusim"
        other.write_bytes(self.gpusim.read_bytes() + b"\0")
        other.chmod(0o755)
        done = subprocess.run([other, "sweep", *map(str, join)], text=True, capture_output=True,
                              check=False, cwd=self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"begun by another gpusim \(.*\) than there is at .*need the "
                         "same file")
        self.assertIn("there is no study", self.refused("--join", self.folder / "none"))

    def test_z_a_folder_that_is_not_shared(self):
        _, errors = self.apart.communicate(timeout=90)
        self.assertEqual(self.apart.returncode, 2)
        self.assertRegex(errors, r"rank 1 of 2 at \S+ does not see there what rank 0 wrote, after "
                         r"30 s: the folder must be on a file system that all machines share")


if __name__ == "__main__":
    if not shutil.which("mpirun"):
        print("no mpirun")
        sys.exit(77)
    main(Mpi)
