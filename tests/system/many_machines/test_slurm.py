#!/usr/bin/env python3
"""Studies over a job array of Slurm (docs/many-machines.md), with a real cluster of two nodes on
this machine.

  test_slurm.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...
Exit status 77 where Slurm or munge is not installed.
"""
import json
import os
import signal
import subprocess
import sys

sys.dont_write_bytecode = True
import slurm_cluster  # noqa: E402
from shared_study import SharedStudyCase, main  # noqa: E402


class Slurm(SharedStudyCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.cluster = slurm_cluster.Cluster()
        cls.addClassCleanup(cls.cluster.close)
        os.environ.update(cls.cluster.environment)
        os.environ["PATH"] = slurm_cluster.PLACES

    def tearDown(self):
        self.cluster.ask("scancel", "--full", "--name=gpusim-sweep")

    def start(self, *words):
        process = subprocess.Popen(self.command(*words), cwd=self.folder, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def test_a_task_that_dies_costs_nothing_but_time(self):
        study = self.study()
        process = self.start(*study, "-o", self.out, "--slurm", "3")
        self.kill_while_it_runs(1)
        out, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, errors)
        self.assertIn("10 points (10 ran now), 0 failed", out)
        self.assertRegex(errors, r"job \d+, 3 tasks for 10 points; logs: \S+/logs")
        self.assertFalse((self.out / "claims").exists())
        self.assertFalse((self.out / "running").exists())
        self.same_as_on_one_machine(*study)

    def test_restart_of_a_job_whose_tasks_all_died(self):
        study = self.study()
        process = self.start(*study, "-o", self.out, "--slurm", "2")
        self.kill_while_it_runs(0, 1, at_least=2)
        out, errors = process.communicate(timeout=120)
        self.assertEqual((process.returncode, out), (1, ""))
        for number in (0, 1):
            self.assertRegex(errors, rf"task {number} of job \d+ was ended before its work was "
                             rf"done; its log: {self.out}/logs/\d+_{number}\.log")
        self.assertRegex(errors, r"gpusim: [1-8] of 10 points are not finished; the same command")
        self.assertFalse((self.out / "results.csv").exists())
        before = self.stamps()
        self.assertIn(len(before), range(2, 10))
        done = self.sweep(*study, "-o", self.out, "--slurm", "2")
        self.assertIn(f"10 points ({10 - len(before)} ran now), 0 failed", done.stdout)
        self.assert_kept(before)
        self.same_as_on_one_machine(*study)
        # Nothing is left to do: no job.
        done = self.sweep(*study, "-o", self.out, "--slurm", "2")
        self.assertIn("(0 ran now)", done.stdout)
        self.assertNotIn("job", done.stderr)

    def test_the_same_command_waits_for_a_job_that_still_works(self):
        study = self.study(steps=100000000)
        first = self.start(*study, "-o", self.out, "--slurm", "2")
        self.wait_until(lambda: len(self.cards()) == 3 and self.points(), "two tasks, one point")
        # However slow the machine is, they do not end before all has been looked at.
        tasks = [c["pid"] for c in self.cards() if c["session"].startswith("slurm-")]
        for pid in tasks:
            os.kill(pid, signal.SIGSTOP)
        job = {c["session"] for c in self.cards()}.difference({""}).pop().removeprefix("slurm-")
        self.assertIn(f"it waits for Slurm's job {job}",
                      self.refused(*study, "-o", self.out, "--slurm", "2"))
        first.kill()
        first.communicate()
        # Whoever does not wait for it learns of the job, and what to do.
        said = self.refused(*study, "-o", self.out)
        for what in (f"task 0 of job {job} at n", f"wait for Slurm's job {job}", f"scancel {job}`",
                     f"--join {self.out}", "the same command with --slurm"):
            self.assertIn(what, said.replace("task 1", "task 0"))
        for option in ("--restart", "--retry"):
            self.assertRegex(self.refused(*study, "-o", self.out, "--slurm", "2", option),
                             f"job {job} still works.*scancel {job}")
        self.assertIn("another study", self.refused(*self.study(steps=100000000, cores="1,2"), "-o",
                                                    self.out, "--slurm", "2"))
        before = self.stamps()
        self.assertIn(len(before), range(1, 10))
        for pid in tasks:
            os.kill(pid, signal.SIGCONT)
        done = self.sweep(*study, "-o", self.out, "--slurm", "2")
        self.assertRegex(done.stderr, rf"still at work: job {job}, 2 tasks for \d points")
        self.assertRegex(done.stdout, r"10 points \(\d ran now\), 0 failed")
        self.assert_kept(before)
        # No other job was handed in, and this one is over and forgotten.
        self.assertEqual({p.name.split("_")[0] for p in (self.out / "logs").iterdir()}, {job})
        self.wait_until(lambda: not self.cluster.jobs(), "the end of all jobs")
        self.assertFalse((self.out / "workers").exists())
        # A record that is left does not bring back a job that is no more, or another's.
        record = self.out / "logs" / "job.json"
        for text in ("", "[]", json.dumps({"schema": "gpusim-slurm-job-1", "job": job,
                                           "submitted": "2020-01-01T00:00:00", "tasks": 2,
                                           "retry": False})):
            record.write_text(text)
            done = self.sweep(*study, "-o", self.out, "--slurm", "2")
            self.assertIn("(0 ran now)", done.stdout)
            self.assertNotIn("job", done.stderr)

    def test_an_array_of_ones_own(self):
        """The same command in each task: no option says so."""
        study = self.study(steps=2000000)
        logs = self.folder / "%a.log"
        subprocess.run(["sbatch", "--wait", "--array=1-3", f"--output={logs}", "--wrap",
                        "exec " + " ".join(self.command(*study, "-o", self.out))],
                       cwd=self.folder, check=True, capture_output=True, timeout=120)
        said = [(self.folder / f"{n}.log").read_text() for n in (1, 2, 3)]
        self.assertEqual(sum("page: " in text for text in said), 1, said)
        self.assertTrue(all("ran here" in text or "page: " in text for text in said), said)
        self.same_as_on_one_machine(*study)

    def test_srun(self):
        study = self.study(steps=2000000)
        done = subprocess.run(["srun", "-n", "3", *self.command(*study, "-o", self.out)],
                              cwd=self.folder, text=True, capture_output=True, timeout=120,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("page: "), 1, done.stdout)
        self.assertEqual({c["name"].split(" of job")[0] for c in self.cards()},
                         {f"task {n} of 3" for n in range(3)})
        self.same_as_on_one_machine(*study)

    def test_ctrl_c_cancels_the_job(self):
        study = self.study(steps=10**12)
        process = self.start(*study, "-o", self.out, "--slurm", "2")
        self.wait_until(lambda: len(self.cards()) == 3, "two tasks")
        # Another command may help, not begin.
        self.assertIn("--join", self.refused(*study, "-o", self.out))
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertIn("the same command goes on", errors)
        self.wait_until(lambda: not self.cluster.jobs(), "the end of all jobs")
        # Tasks gave back what they ran, and said so.
        for log in (self.out / "logs").glob("*.log"):
            self.assertIn("gpusim: interrupted: 0 of 10 points", log.read_text())

    def test_what_is_refused(self):
        study = self.study()
        self.assertRegex(self.refused(*study, "-o", self.out, "--slurm", "2",
                                      "--sbatch=--partition=nowhere"),
                         "sbatch did not take the job: .*partition")
        self.assertIn("--slurm TASKS",
                      self.refused(*study, "-o", self.out, "--sbatch=--time=1"))
        self.assertIn("--slurm", self.refused(*study, "-o", self.out, "--slurm", "0"))
        old = os.environ["PATH"]
        try:
            os.environ["PATH"] = "/nowhere"
            self.assertRegex(self.refused(*study, "-o", self.out, "--slurm", "2"),
                             "sbatch: .*is Slurm installed")
        finally:
            os.environ["PATH"] = old


if __name__ == "__main__":
    if slurm_cluster.missing():
        print("not installed:", ", ".join(slurm_cluster.missing()))
        sys.exit(77)
    main(Slurm)
