#!/usr/bin/env python3
"""Checkpoints: a run that is stopped anywhere and goes on elsewhere is the run that was never
stopped.

  test_checkpoint.py GPUSIM EXAMPLES_FOLDER BUILD_FOLDER [UNITTEST ARGUMENT]...

GPUSIM_SEED replays the random numbers of a failure; GPUSIM_LONG=1 takes many more of everything;
GPUSIM_TEST_ISA says for which guest ISA.
"""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "differential"))
import guest_programs  # noqa: E402

ISA = os.environ.get("GPUSIM_TEST_ISA", "aarch64")
CC = [f"/usr/bin/{ISA}-linux-gnu-gcc", "-O1", "-g", "-static", "-pthread"]
LONG = os.environ.get("GPUSIM_LONG", "0") != "0"
SEED = int(os.environ.get("GPUSIM_SEED") or random.randrange(1 << 30))
TIMEOUT_S = 300
STOPPED = 123
BACKENDS = os.environ.get("GPUSIM_TEST_BACKENDS", "scalar simd").split()
# Not the program's: this machine's, or a matter of what was translated before (docs/cli.md).
NOT_COMPARED = {"seconds", "mips", "backend", "device", "micro_ops"}


FAR_STEPS = """
#include "gpusim_guest.h"
#include "gpusim_sync.h"
static volatile uint32_t all, table[1024];
int gpusim_main(void) {
  uint64_t i = gpusim_core_id();
  for (int pass = 0; pass < 2000; ++pass, i += gpusim_core_count())
    all = all * 5 + table[i % 1024] + (uint32_t)i;
  gpusim_barrier();
  if (gpusim_core_id() == 0) gpusim_printf("%u\\n", all);
  return 0;
}
"""


class Checkpoints(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.build.mkdir(parents=True, exist_ok=True)
        cls.elf = cls.build / "guests.elf"
        subprocess.run([*CC, HERE / "guests.c", "-o", cls.elf], check=True)
        # Translated once: most tests are about what happens after that.
        cls.module = cls.build / "guests.gsm"
        subprocess.run([cls.gpusim, "translate", cls.elf, "-o", cls.module], check=True,
                       capture_output=True)

    def setUp(self):
        self.random = random.Random(f"{SEED} {self.id()}")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.file = self.folder / "run.gsc"

    def gpusim_run(self, *words, stdin=b"", cwd=None):
        return subprocess.run([str(self.gpusim), "run", "--quiet", *map(str, words)], input=stdin,
                              capture_output=True, timeout=TIMEOUT_S, cwd=cwd or self.folder)

    def whole(self, program, options, args, stdin=b""):
        stats = self.folder / "whole.json"
        done = self.gpusim_run(program, *options, "--stats", stats, "--per-core", "--", *args,
                               stdin=stdin)
        return done, json.loads(stats.read_text())

    def counts(self):
        """A GPU counts per core only if it is asked to from the start."""
        return ["--stats", self.folder / "begun.json", "--per-core"] if "cuda" in BACKENDS else []

    def begin(self, program, options, every, args, stdin=b""):
        """Runs up to a checkpoint; false if the program ended before."""
        self.file.unlink(missing_ok=True)
        done = self.gpusim_run(program, *options, *self.counts(), "--checkpoint", self.file,
                               "--checkpoint-every", every, "--checkpoint-stop", "--", *args,
                               stdin=stdin)
        self.assertEqual(done.returncode == STOPPED, self.file.exists(), done.stderr)
        return done, self.file.exists()

    def resume(self, *options, stdin=b""):
        stats = self.folder / "resumed.json"
        stats.unlink(missing_ok=True)
        done = self.gpusim_run("--resume", self.file, *options, "--stats", stats, "--per-core",
                               stdin=stdin)
        return done, json.loads(stats.read_text()) if stats.exists() else None

    def assert_same_output(self, whole, parts, in_order):
        # Who of several processes prints first is the interleaving's business.
        order = list if in_order else sorted
        self.assertEqual(order(b"".join(p.stdout for p in parts).splitlines()),
                         order(whole.stdout.splitlines()))

    def assert_same(self, whole, parts, stats, resumed, tallies=True, machine=False):
        """`machine`: all parts ran on the same kind of machine."""
        self.assert_same_output(whole, parts, machine or resumed["cores"] == 1)
        self.assertEqual(b"".join(p.stderr for p in parts), whole.stderr)
        self.assertEqual(parts[-1].returncode, whole.returncode)
        if tallies:
            lanes = set() if machine else {"divergence", "waiting"}
            self.assertEqual(stats.keys(), resumed.keys())
            for key in stats.keys() - NOT_COMPARED - lanes:
                self.assertEqual(resumed[key], stats[key], key)

    def round_trip(self, program, options, args=(), steps=(), tallies=True, parts=2, setup=None,
                   stdin=b""):
        """Runs whole, then in `parts`, each on the next of `steps` (options of a backend); returns
        what the files were that each way left."""
        options = ["--root", self.folder, *options]
        if "cuda" in BACKENDS and "private" not in options:
            # What is usual on this machine's processor is more than the emulated GPU has.
            options += ["--memory-size", "1G", "--stack-size", "256K"]
        before = setup() if setup else None
        whole, stats = self.whole(program, [*options, *steps[0]], args, stdin)
        after_whole = setup() if setup else None
        done = []
        machine = all(step == steps[0] for step in steps)
        total = stats["guest_instructions"]
        every = self.random.randrange(1, max(2, total // (parts - 1)))
        with self.subTest(f"GPUSIM_SEED={SEED} {program.name} {args} {options} {steps} {every}"):
            first, going = self.begin(program, [*options, *steps[0]], every, args, stdin)
            done.append(first)
            for step in steps[1:-1]:
                if not going:
                    break
                done.append(self.gpusim_run(
                    "--resume", self.file, "--root", self.folder, *step, *self.counts(),
                    "--checkpoint", self.file,
                    "--checkpoint-every", self.random.randrange(1, max(2, total // 4)),
                    "--checkpoint-stop"))
                going = done[-1].returncode == STOPPED
            if going:
                last, resumed = self.resume("--root", self.folder, *steps[-1], stdin=stdin)
                done.append(last)
                self.assert_same(whole, done, stats, resumed, tallies, machine)
            else:
                self.assert_same_output(whole, done, machine or stats["cores"] == 1)
            if setup:
                self.assertEqual(setup(), after_whole)
        return before

    # --- what goes on as if nothing had been

    def test_a_program_without_timing_goes_on_on_any_backend(self):
        """Cores of a shared machine meet at barriers; private ones are all alone."""
        programs = ["fft", "matmul_int", "idct"] if LONG else ["fft"]
        cores = (1, 7, 64, 1000) if LONG else (1, 1000)
        for name in programs:
            for n in cores:
                models = ["shared", "private"] if LONG and n <= 7 else ["shared"]
                for model in models:
                    steps = [["--backend", b, "--threads", self.random.choice((1, 2))]
                             for b in self.random.sample(2 * BACKENDS, 3)]
                    options = ["--cores", n, "--memory", model, "--slice",
                               self.random.choice((777, 5000))]
                    self.round_trip(self.examples / f"{name}.elf", options, steps=steps,
                                    tallies=model == "private" or n == 1)

    def test_busy_waiting_repeats_exactly_on_the_same_machine(self):
        """Who spins how often depends on the interleaving: that is kept, too."""
        for name in ("fft", "bitonic_sort", "nbody", "histogram")[:4 if LONG else 1]:
            # With native code from the start, cores change between lockstep and running alone as
            # often as can be.
            for backend, cores, hot in (("scalar", 7, ()), ("simd", 200, ()),
                                        ("simd", 40, ("--native-after", 0))):
                step = ["--backend", backend, "--threads", 1, *hot]
                if backend == "simd":
                    step += ["--group-width", self.random.choice((8, 64))]
                self.round_trip(self.examples / f"{name}.elf", ["--cores", cores, "--slice", 2000],
                                steps=[step] * (4 if LONG else 2))

    def test_busy_waiting_goes_on_elsewhere(self):
        for name in ("bitonic_sort", "histogram") if LONG else ("fft",):
            steps = [["--backend", b] for b in self.random.sample(2 * BACKENDS, 3)]
            self.round_trip(self.examples / f"{name}.elf", ["--cores", 100], steps=steps,
                            tallies=False)

    def guests(self, what, cores, tallies=True, times=4 if LONG else 1, args=(), setup=None):
        for _ in range(times):
            # The same backend first: everything is equal. Then others.
            for backend in BACKENDS if LONG else self.random.sample(BACKENDS, 1):
                step = ["--backend", backend, "--threads", 1]
                self.round_trip(self.elf if LONG else self.module,
                                ["--cores", cores, "--slice", 300], [what, *args],
                                [step] * 3, setup=setup)
            steps = [["--backend", b, "--threads", 2] for b in self.random.sample(2 * BACKENDS, 3)]
            self.round_trip(self.elf if LONG else self.module, ["--cores", cores, "--slice", 300],
                            [what, *args], steps,
                            tallies=tallies, setup=setup)

    def test_files(self):
        (self.folder / "in.txt").write_bytes(self.random.randbytes(420))

        def taken():
            found = {}
            for name in ("log", "table", "after"):
                path = self.folder / name
                found[name] = path.read_bytes() if path.exists() else None
                path.unlink(missing_ok=True)
            return found

        self.guests("files", 1, args=["in.txt"], setup=taken)

    def test_pipes(self):
        self.guests("pipes", 3)
        self.guests("pipes", 1)

    def test_threads(self):
        # What threads do in between depends on when each finds the mutex free.
        self.guests("threads", 6, tallies=False)

    def test_locks_that_are_handed_over(self):
        self.guests("locks", 6, tallies=False)

    def test_timers(self):
        # How long the program waits for them is the clock's matter.
        self.round_trip(self.module, ["--cores", 1, "--slice", 1000], ["timers"],
                        [["--backend", b] for b in ("scalar", "simd")], tallies=False)

    def test_signals(self):
        self.guests("signals", 1)

    def test_memory(self):
        self.guests("memory", 1)

    def test_private_processes(self):
        for what, cores in (("memory", 70), ("signals", 9)):
            steps = [["--backend", b] for b in self.random.sample(2 * BACKENDS, 3)]
            self.round_trip(self.elf if LONG else self.module,
                            ["--cores", cores, "--memory", "private", "--slice", 1000,
                                       "--memory-size", "8M"], [what], steps)

    def test_sleeping(self):
        # How long cores sleep, and with that what they execute, is the clock's.
        self.round_trip(self.module, ["--cores", 2, "--slice", 1000], ["sleep"],
                        [["--backend", b] for b in ("scalar", "simd")], tallies=False)

    def test_standard_input_goes_on_where_it_was(self):
        text = self.folder / "lines.txt"
        text.write_text("one\ntwo\nthree\nfour\nfive\n" * 3)
        command = [self.gpusim, "run", "--quiet", "--slice", "200"]
        with text.open("rb") as stdin:
            whole = subprocess.run([*command, self.module, "--", "input"], stdin=stdin,
                                   capture_output=True)
        with text.open("rb") as stdin:
            first = subprocess.run([*command, self.module, "--checkpoint", self.file,
                                    "--checkpoint-every",
                                    "8000", "--checkpoint-stop", "--", "input"], stdin=stdin,
                                   cwd=self.folder, capture_output=True)
        with text.open("rb") as stdin:
            rest = subprocess.run([*command, "--resume", self.file], stdin=stdin, cwd=self.folder,
                                  capture_output=True)
        self.assertEqual((first.returncode, rest.returncode), (STOPPED, 0), rest.stderr)
        self.assertEqual(first.stdout + rest.stdout, whole.stdout)

    def test_limits_count_from_the_start(self):
        limit = ["--max-instructions", "200000"]
        whole, stats = self.whole(self.module, limit, ["long"])
        first, _ = self.begin(self.module, [*limit, "--slice", 1000], 100000, ["long"])
        rest, resumed = self.resume()
        self.assertEqual(rest.returncode, 124)
        self.assert_same(whole, [first, rest], stats, resumed)

    def test_an_entry_goes_on(self):
        source = self.folder / "entry.c"
        source.write_text("unsigned long sum(unsigned long n) { volatile unsigned long s = 0;"
                          " while (n--) s += n * s + 1; return s; }\n void _start(void) {}\n")
        elf = self.folder / "entry.elf"
        subprocess.run([CC[0], "-O1", "-static", "-nostdlib", source, "-o", elf], check=True)
        self.round_trip(elf, ["--cores", 70, "--entry", "sum", "--arg", "5000", "--slice", 500],
                        steps=[["--backend", "simd"], ["--backend", "scalar"]])

    @unittest.skipUnless("simd" in BACKENDS and ISA == "aarch64", "of backend simd")
    def test_groups_that_step_far(self):
        """128 groups and more, whose cores share a loop by i += cores, have short turns (ADR 0057).
        What all of them write to without order depends on each turn's length."""
        source, elf = self.folder / "far.c", self.folder / "far.elf"
        source.write_text(FAR_STEPS)
        guest = guest_programs.AARCH64
        subprocess.run([guest.compiler, "-O2", source, *guest.flags, *guest.runtime, "-lgcc", "-o",
                        elf], check=True)
        step = ["--backend", "simd", "--threads", 1]
        self.round_trip(elf, ["--cores", 8256, "--slice", 9000], steps=[step] * 3)

    # --- while a run goes on

    def test_a_signal_asks_for_one(self):
        whole = self.gpusim_run(self.module, "--", "long", 400)
        run = subprocess.Popen([self.gpusim, "run", self.module, "--slice", "1000", "--backend",
                                "scalar",
                                "--checkpoint", self.file, "--", "long", "400"],
                               stdout=subprocess.PIPE,
                               # reads no more than a line
                               stderr=subprocess.PIPE, cwd=self.folder, bufsize=0)
        first = run.stdout.readline()  # it is under way
        run.send_signal(signal.SIGUSR1)
        out, err = run.communicate(timeout=TIMEOUT_S)
        self.assertEqual((run.returncode, first + out), (7, whole.stdout))
        self.assertRegex(err.decode(), r"note: checkpoint .*run.gsc: [0-9.]+ MiB in")
        rest, _ = self.resume("--backend", "simd")
        self.assertEqual(rest.returncode, 7)
        self.assertTrue(whole.stdout.endswith(rest.stdout) and rest.stdout)

    def test_without_the_option_the_signal_ends_it(self):
        run = subprocess.Popen([self.gpusim, "run", self.elf, "--", "input"], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        time.sleep(0.3)
        run.send_signal(signal.SIGUSR1)
        run.communicate(timeout=TIMEOUT_S)
        self.assertEqual(run.returncode, -signal.SIGUSR1)

    def test_killed_at_any_moment_the_last_one_is_good(self):
        whole = self.gpusim_run(self.module, "--", "long")
        resumed = 0
        for _ in range(100 if LONG else 5):
            self.file.unlink(missing_ok=True)
            run = subprocess.Popen([self.gpusim, "run", self.module, "--quiet", "--slice", "500",
                                    "--checkpoint",
                                    self.file, "--checkpoint-every", "20000", "--", "long"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   cwd=self.folder)
            deadline = time.monotonic() + TIMEOUT_S
            while not self.file.exists() and time.monotonic() < deadline and run.poll() is None:
                time.sleep(0.005)
            time.sleep(self.random.random() * 0.3)
            run.kill()
            run.communicate()
            if run.returncode != -signal.SIGKILL:
                continue
            rest, _ = self.resume("--backend", self.random.choice(BACKENDS))
            self.assertEqual(rest.returncode, 7, (SEED, rest.stderr))
            self.assertTrue(whole.stdout.endswith(rest.stdout), SEED)
            resumed += 1
        self.assertGreater(resumed, 0)

    # --- what is refused

    def test_what_cannot_be_kept_is_said_and_the_run_goes_on(self):
        for guest, why in [
                ("deleted", "the guest has a file open that was deleted or replaced: .*/gone"),
                ("named_pipe", "the guest has .*/pipe open, which is no file.*")]:
            with self.subTest(guest):
                whole = self.gpusim_run(self.module, "--root", self.folder, "--", guest)
                done, exists = self.begin(self.module, ["--root", self.folder, "--slice", 1000],
                                          100000, [guest])
                self.assertFalse(exists)
                self.assertEqual((done.returncode, done.stdout), (0, whole.stdout))
                self.assertRegex(done.stderr.decode(),
                                 rf"\Agpusim: no checkpoint: {why}; the run goes on\n\Z")
                self.assertEqual(list(self.folder.glob("run.gsc*")), [])

    def refused(self, pattern, *words):
        done = self.gpusim_run(*words)
        self.assertEqual((done.returncode, done.stdout), (2, b""), done.stderr)
        self.assertRegex(done.stderr.decode(), r"\Agpusim: error: .*" + pattern + r".*\n\Z")

    def test_refusals(self):
        (self.folder / "in.txt").write_bytes(self.random.randbytes(420))
        root = ["--root", self.folder]
        _, exists = self.begin(self.module, [*root, "--slice", 500], 200000, ["files", "in.txt"])
        self.assertTrue(exists)
        resume = ["--resume", self.file]
        self.refused("a checkpoint gives no rights: allow it again with --root", *resume)
        self.refused("no --cores", *resume, *root, "--cores", 2)
        self.refused("no arguments after --", *resume, *root, "--", "x")
        self.refused("is not the program", self.examples / "fft.elf", *resume, *root)
        self.refused("need --checkpoint FILE", self.elf, "--checkpoint-every", 5)
        self.refused("--checkpoint /dev/null: not a file", self.elf, "--checkpoint", "/dev/null")
        self.refused("--checkpoint /nowhere/x: No such file", self.elf, "--checkpoint",
                     "/nowhere/x")
        self.refused("No such file", "--resume", self.folder / "none")
        self.refused("not a file", "--resume", self.folder)
        self.refused("not a checkpoint", "--resume", self.elf)
        log = (self.folder / "log").read_bytes()
        (self.folder / "log").write_bytes(log[:-1])
        self.refused("/log open: it had .* bytes and now has", *resume, *root)
        (self.folder / "log").write_bytes(log + b"what the run wrote later")
        text = (self.folder / "in.txt").read_bytes()
        (self.folder / "in.txt").write_bytes(text + b"x")
        self.refused("/in.txt open: it had 420 bytes and now has 421", *resume, *root)
        self.assertTrue((self.folder / "log").read_bytes().endswith(b"later"))  # untouched so far
        (self.folder / "in.txt").unlink()
        self.refused("/in.txt open: No such file", *resume, *root)
        (self.folder / "in.txt").write_bytes(text)
        done = self.gpusim_run(*resume, *root)
        self.assertEqual((done.returncode, done.stderr), (self.whole_status(text), b""))
        self.assertTrue((self.folder / "log").read_bytes().startswith(log))

    def whole_status(self, text):
        folder = self.folder / "again"
        folder.mkdir()
        (folder / "in.txt").write_bytes(text)
        done = self.gpusim_run(self.module, "--root", folder, "--", "files", "in.txt", cwd=folder)
        self.assertEqual((folder / "log").read_bytes(), (self.folder / "log").read_bytes())
        self.assertEqual((folder / "table").read_bytes(), (self.folder / "table").read_bytes())
        shutil.rmtree(folder)
        return done.returncode

    def test_damage_is_refused(self):
        """A sample on the command line; the unit test flips every byte."""
        self.begin(self.module, ["--slice", 500], 50000, ["long"])
        good = self.file.read_bytes()
        for _ in range(40 if LONG else 4):
            at = self.random.randrange(len(good))
            bad = bytearray(good)
            bad[at] ^= 1 << self.random.randrange(8)
            for bytes_ in (bytes(bad), good[:at]):
                self.file.write_bytes(bytes_)
                with self.subTest(f"GPUSIM_SEED={SEED} byte {at}"):
                    self.refused(r"(damaged checkpoint|not a checkpoint|another version)",
                                 "--resume", self.file)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    Checkpoints.gpusim = pathlib.Path(sys.argv.pop(1)).resolve()
    Checkpoints.examples = pathlib.Path(sys.argv.pop(1)).resolve()
    Checkpoints.build = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
