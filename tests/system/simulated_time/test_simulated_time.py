#!/usr/bin/env python3
"""`gpusim run --simulated-time` (docs/simulated-time.md).

  test_simulated_time.py GPUSIM OPENMP_LIBRARY_FOLDER SOURCE_FOLDER BUILD_FOLDER [UNITTEST
  ARGUMENT]...

GPUSIM_TEST_ISA says for which guest ISA.
"""

import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
ISA = os.environ.get("GPUSIM_TEST_ISA", "aarch64")
CROSS = f"/usr/bin/{ISA}-linux-gnu-gcc"
CROSS_CXX = f"/usr/bin/{ISA}-linux-gnu-g++"
MARCH = {"aarch64": "-march=armv8.1-a", "riscv64": "-march=rv64gc"}[ISA]
# One instruction that the compiler cannot leave out, and its register.
SPEND, SCRATCH = {"aarch64": ("add x9, x9, #1", "x9"), "riscv64": ("addi t0, t0, 1", "t0")}[ISA]
BARE = ["-static", "-nostdlib", "-ffreestanding", "-fno-pie", "-no-pie", "-fno-stack-protector"]
OPENMP = """
#include <stdio.h>
static void spend(long n) { for (; n > 0; --n) __asm__ volatile(SPEND : : : SCRATCH); }
int main(void) {
  for (int round = 0; round < 3; ++round) {
    spend(SERIAL);
    _Pragma("omp parallel") spend(PARALLEL);
  }
  puts("done");
}
"""

# Sums by hand are of instructions that wait for no results.
BUS = "bus-8,cores.latency=null"


class SimulatedTime(unittest.TestCase):
    gpusim: pathlib.Path
    openmp: pathlib.Path
    source: pathlib.Path
    build: pathlib.Path

    @classmethod
    def setUpClass(cls):
        cls.build.mkdir(parents=True, exist_ok=True)
        cls.guest = cls.build / "barrier.elf"
        subprocess.run([CROSS, "-O2", MARCH, *BARE, f"-I{cls.source}", "-Wl,--entry=work",
                        "-o", cls.guest, HERE / "barrier.c"], check=True)
        cls.locks_guest = cls.build / "locks.elf"
        subprocess.run([CROSS, "-O2", MARCH, "-static", f'-DSPEND="{SPEND}"',
                        f'-DSCRATCH="{SCRATCH}"', "-o", cls.locks_guest, HERE / "locks.c"],
                       check=True)
        cls.guards_guest = cls.build / "guards.elf"
        subprocess.run([CROSS_CXX, "-O2", MARCH, "-static", f'-DSPEND="{SPEND}"',
                        f'-DSCRATCH="{SCRATCH}"', "-o", cls.guards_guest, HERE / "guards.cc"],
                       check=True)

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def run_gpusim(self, *words, status=0, time="--simulated-time"):
        stats = self.folder / "stats.json"
        command = [str(self.gpusim), "run", "--quiet", "--stats", str(stats), time, "--per-core",
                   *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.returncode, status, f"{command}\n{done.stdout}{done.stderr}")
        return json.loads(stats.read_text())["simulated_time"] if status == 0 else done.stderr

    def test_barriers_take_the_time_of_the_slowest(self):
        n, cores = 10000, 70
        for options, clock in itertools.product(
                (("--backend", "scalar"), ("--backend", "simd"),
                 ("--backend", "simd", "--threads", 2), ("--backend", "simd", "--seed", 3)),
                ("--simulated-time", "--simulated-time=locks")):
            time = self.run_gpusim(self.guest, "--entry", "work", "--arg", "@core", "--arg",
                                   "@cores",
                                   "--arg", n, "--cores", cores, *options, time=clock)
            # Two parts after each other, three instructions a round; looks at the barrier come on
            # top.
            self.assertGreater(time["cycles"], 2 * 3 * n)
            self.assertLess(time["cycles"], 2 * 3 * n + 500)
            cycles = [core["cycles"] for core in time["per_core"]]
            waited = [core["waited_cycles"] for core in time["per_core"]]
            self.assertEqual(max(cycles), time["cycles"])
            self.assertLess(max(cycles) - min(cycles), 500)
            self.assertGreater(waited[0], 2 * 3 * n - 500)
            self.assertTrue(3 * n - 500 < waited[1] < 3 * n + 500, waited[1])
            self.assertAlmostEqual(time["waited_share"], sum(waited) / sum(cycles))

    def test_without_barriers_it_is_a_sum(self):
        time = self.run_gpusim(self.guest, "--entry", "divide", "--timing", "cortex-a7")
        plain = self.run_gpusim(self.guest, "--entry", "divide")
        self.assertEqual(plain["cycles"], 3)
        self.assertEqual(plain["clock_hz"], 1e9)
        self.assertGreater(time["cycles"], plain["cycles"])
        self.assertAlmostEqual(time["seconds"], time["cycles"] / time["clock_hz"])

    def openmp_cycles(self, serial, parallel):
        source, elf = self.folder / "p.c", self.folder / "p.elf"
        source.write_text(OPENMP)
        subprocess.run([CROSS, "-O2", MARCH, "-fopenmp", "-static", "-B", self.openmp,
                        f"-DSERIAL={serial}", f"-DPARALLEL={parallel}",
                        f'-DSPEND="{SPEND}"', f'-DSCRATCH="{SCRATCH}"', "-o", elf, source],
                       check=True)
        return self.run_gpusim(elf, "--cores", 16)["cycles"]

    def test_regions_of_openmp_begin_when_the_master_comes_to_them(self):
        base = self.openmp_cycles(1, 1)
        one = 3 * 3 * 200000
        both = self.openmp_cycles(200000, 200000) - base
        # Would workers not wait for the serial part, it would hide behind the parallel one.
        self.assertTrue(0.98 * 2 * one < both < 1.02 * 2 * one, both / one)

    # ---- Locks and condition variables of a C library, and locks of the program's own

    BACKENDS = (("--backend", "scalar"), ("--backend", "simd"),
                ("--backend", "simd", "--threads", 2, "--slice", 777))
    # A chip sees the same locks; that they are known of all backends needs no chip.
    CLOCKS = (*((None, options) for options in BACKENDS), (BUS, BACKENDS[1]))

    def locks(self, chip, kind, threads, rounds, held, outside, *options):
        """Cycles of locks.c; chip: its name, or None for --simulated-time=locks."""
        if kind.split("-")[0] in ("named", "New where another was", "kept", "Opened"):
            options += ("--root", "/dev/shm")
        return self.cycles(chip, self.locks_guest, threads + 1, options,
                           (kind, threads, rounds, held, outside))

    def cycles(self, chip, guest, cores, options, arguments):
        stats = self.folder / "stats.json"
        time = ("--chip", chip) if chip else ("--simulated-time=locks",)
        command = [self.gpusim, "run", guest, "--cores", cores, "--quiet", "--stats", stats, *time,
                   *options, "--", *arguments]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120,
                              check=False)
        self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
        stats = json.loads(stats.read_text())
        return stats["chip" if chip else "simulated_time"]["cycles"]

    def test_locks_exclude_each_other(self):
        threads, rounds, held = 4, 40, 1000
        for kind, (chip, options) in itertools.product(
                ("mutex", "spin", "ticket", "flag", "writers", "attempts", "limited", "units",
                 "named", "New where another was", "kept", f"Opened-by-all-{os.getpid()}",
                 "Units until then"), self.CLOCKS):
            with self.subTest(chip=chip, kind=kind, options=options):
                # Starts and ends of threads are in both.
                pieces = (self.locks(chip, kind, threads, rounds, held, 0, *options) -
                          self.locks(chip, kind, threads, rounds, 0, 0, *options))
                expected = threads * rounds * 3 * held
                # On a chip locks take their time, and what is fetched the first time is in either.
                self.assertLess(abs(pieces / expected - 1), 0.04 if chip else 0.01)

    def test_what_is_outside_of_locks_goes_on_side_by_side(self):
        threads, rounds, held = 4, 40, 1000
        for chip in (None, BUS):
            for kind in ("mutex", "ticket"):
                for options in self.BACKENDS[:2]:
                    with self.subTest(chip=chip, kind=kind, options=options):
                        both = self.locks(chip, kind, threads, rounds, held, 9 * held, *options)
                        # The first time they come together; then they are out of each other's way.
                        self.assertGreater(both, 3 * held * 10 * rounds)
                        self.assertLess(both, 1.25 * 3 * held * 10 * rounds)

    def test_conditions_and_semaphores_order_threads(self):
        rounds, length = 5, 20000
        for kind, (chip, options) in itertools.product(("condition", "deadline", "goods"),
                                                       self.CLOCKS):
            with self.subTest(chip=chip, kind=kind, options=options):
                # In the run the consumer may start when the first goods are there already.
                time = (self.locks(chip, kind, 2, rounds + 1, length, 2 * length, *options) -
                        self.locks(chip, kind, 2, 1, length, 2 * length, *options))
                # The producer waits until the goods are used up.
                expected = rounds * 3 * 3 * length
                self.assertTrue(0.99 * expected < time < 1.01 * expected, time / expected)

    def check(self, expected, kind, threads, rounds, held, outside):
        """Cycles of spend() on all clocks, beside starts and ends of threads."""
        for chip, options in self.CLOCKS:
            with self.subTest(chip=chip, kind=kind, options=options):
                time = (self.locks(chip, kind, threads, rounds, held, outside, *options) -
                        self.locks(chip, kind, threads, rounds, 0, 0, *options))
                self.assertTrue(0.96 * expected < time < 1.04 * expected, time / expected)

    def test_readers_pass_each_other(self):
        self.check(40 * 3 * 1000, "readers", 4, 40, 1000, 0)

    def test_a_semaphore_lets_as_many_pass_as_it_has_units(self):
        self.check(4 * 40 * 3 * 1000 / 2, "pairs", 4, 40, 1000, 0)

    def test_barriers_of_the_library_take_the_time_of_the_slowest(self):
        self.check(20 * 3 * 5000, "barrier", 2, 20, 5000, 0)

    def test_what_is_done_once_comes_before_all_who_need_it(self):
        self.check(3 * 100000 + 3 * 20000, "once", 4, 1, 100000, 20000)

    def test_what_is_initialised_once_comes_before_all_who_need_it(self):
        held, outside = 100000, 20000
        for chip, options in self.CLOCKS:
            with self.subTest(chip=chip, options=options):
                time = (self.cycles(chip, self.guards_guest, 5, options, (held, outside)) -
                        self.cycles(chip, self.guards_guest, 5, options, (0, 0)))
                expected = 3 * (held + outside)
                self.assertTrue(0.96 * expected < time < 1.04 * expected, time / expected)

    def test_a_handler_posts_what_it_interrupts_the_wait_for(self):
        self.check(3 * 100000, "handler", 2, 1, 100000, 100000)

    def test_joining_a_thread_that_ended_waits_for_it(self):
        self.check(3 * 300000 + 3 * 100000, "join", 1, 1, 300000, 100000)

    def test_a_wait_that_came_to_its_limit_is_behind_no_signal(self):
        # The first thread is done at 2 / 3 of the time of the other.
        self.check(3 * 300000, "expired", 2, 1, 300000, 200000)

    def test_what_is_not_noted_changes_no_cycle(self):
        # Beside caches, journals have all blocks and accesses. They are full sooner: cores that
        # race for a word would not meet in the same order.
        caches = self.source / "examples/caches/l1_l2.json"
        work = (self.guest, "--entry", "work", "--arg", "@core", "--arg", "@cores", "--arg", 5000,
                "--cores", 70)
        readers = (self.locks_guest, "--cores", 2, "--", "readers", 1, 10, 1000, 500)
        for (program, *words), options in itertools.product((work, readers), self.BACKENDS[:2]):
            few, all_ = (self.run_gpusim(program, *options, *more, *words,
                                         time="--simulated-time=locks")
                         for more in ((), ("--caches", caches)))
            with self.subTest(program=program, options=options):
                self.assertEqual(few, all_)

    def test_a_clock_without_locks_says_so(self):
        command = [str(self.gpusim), "run", self.locks_guest, "--cores", "3", "--simulated-time",
                   "--", "mutex", "2", "4", "10", "0"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        self.assertIn("as if locks let all cores pass", done.stderr)
        command[command.index("--simulated-time")] += "=locks"
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        self.assertNotIn("as if locks", done.stderr)

    def test_the_clock_has_one_other_kind(self):
        says = self.run_gpusim(self.guest, "--entry", "divide", status=2,
                               time="--simulated-time=barriers")
        self.assertRegex(says, r"\Agpusim: error: --simulated-time=barriers[^\n]+=locks\n\Z")

    def test_timing_must_have_cycles(self):
        says = self.run_gpusim(self.guest, "--entry", "divide", "--timing", "ptx-volta", status=2)
        self.assertRegex(says, r"\Agpusim: error: --timing ptx-volta[^\n]+\n\Z")


if __name__ == "__main__":
    SimulatedTime.gpusim = pathlib.Path(sys.argv[1]).resolve()
    SimulatedTime.openmp = pathlib.Path(sys.argv[2]).resolve()
    SimulatedTime.source = pathlib.Path(sys.argv[3]).resolve()
    SimulatedTime.build = pathlib.Path(sys.argv[4]).resolve()
    unittest.main(argv=[sys.argv[0], *sys.argv[5:]])
