#!/usr/bin/env python3
"""Threads of one process on simulated cores: how many there can be, and how they end.

  test_threads.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...
"""

import json
import os
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "differential"))
import guest_programs  # noqa: E402

CC = ["/usr/bin/aarch64-linux-gnu-gcc", "-O1", "-static", "-pthread"]
BACKENDS = os.environ.get("GPUSIM_TEST_BACKENDS", "simd scalar").split()


class StartOfPrograms(unittest.TestCase):
    """Whether all cores enter a program or the first one, which makes threads."""

    def cores_in(self, elf):
        done = subprocess.run([Threads.gpusim, "run", "--backend", BACKENDS[0], "--cores", "3",
                               "--quiet", elf], capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.count("hello\n")

    def test_without_symbols_as_with_them(self):
        Threads.build.mkdir(parents=True, exist_ok=True)
        source = Threads.build / "hello.c"
        spmd = ('#include "gpusim_guest.h"\n'
                'int gpusim_main(void) { gpusim_puts("hello\\n"); return 0; }')
        libc = '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }'
        for isa in guest_programs.AARCH64, guest_programs.RISCV64:
            # Sections, so that nothing stays that reads the core's number.
            own = [*isa.flags, "-ffunction-sections", "-Wl,--gc-sections", *isa.runtime, "-lgcc"]
            for text, flags, cores in (spmd, own, 3), (libc, ["-static"], 1):
                with self.subTest(isa=isa.name, cores=cores):
                    source.write_text(text)
                    elf = source.with_suffix(f".{isa.name}.elf")
                    subprocess.run([isa.compiler, source, *flags, "-o", elf], check=True)
                    self.assertEqual(self.cores_in(elf), cores)
                    strip = isa.compiler.removesuffix("gcc") + "strip"
                    subprocess.run([strip, "--strip-all", elf], check=True)
                    self.assertEqual(self.cores_in(elf), cores)


SHARED_WORK = """
#include "gpusim_sync.h"
#include "gpusim_loop.h"
static volatile uint32_t sink[4096];
static uint32_t random_of(uint32_t x) { return (x * 2654435761u) >> 9; }
int gpusim_main(void) {
  static gpusim_loop_t loop;
  if (gpusim_core_id() == 0) loop = (gpusim_loop_t)GPUSIM_LOOP_INIT(gpusim_core_count());
  gpusim_barrier();
  for (int round = 0; round < 20; ++round) {
    gpusim_range_t r = gpusim_range_dynamic(&loop, 0, 8 * (int64_t)gpusim_core_count(), 1);
    while (gpusim_next(&r))
      for (uint32_t i = 0; i < 20 + random_of((uint32_t)r.i) % 80; ++i)
        sink[(random_of(i) + (uint32_t)r.i) % 4096] += i;
    gpusim_barrier();
  }
  return 0;
}
"""


class Work(unittest.TestCase):
    @unittest.skipUnless("simd" in BACKENDS, "of backend simd")
    def test_that_cores_share_is_shared(self):
        """Pieces of a loop, of some 500 instructions each, go to all cores alike, though a core
        that runs alone could take many before another one has its turn."""
        Threads.build.mkdir(parents=True, exist_ok=True)
        source, stats = Threads.build / "work.c", Threads.build / "work.json"
        source.write_text(SHARED_WORK)
        elf = source.with_suffix(".elf")
        isa = guest_programs.AARCH64
        subprocess.run([isa.compiler, "-O2", source, *isa.flags, *isa.runtime, "-lgcc", "-o", elf],
                       check=True)
        cores = 1024
        subprocess.run([Threads.gpusim, "run", "--backend", "simd", "--cores", str(cores),
                        "--threads", "1", "--quiet", "--stats", stats, elf], check=True)
        done = json.loads(stats.read_text())
        busiest = max(sum(core["classes"].values()) for core in done["longest_cores"])
        self.assertLess(busiest, 4 * done["guest_instructions"] / cores)


class OpenMP(unittest.TestCase):
    def test_the_compilers_own_run_time_is_noticed(self):
        Threads.build.mkdir(parents=True, exist_ok=True)
        elf = Threads.build / "libgomp.elf"
        source = "volatile int n;\nint main(void) {\n#pragma omp parallel\n  n = 1;\n}\n"
        subprocess.run([*CC, "-fopenmp", "-xc", "-", "-o", elf], input=source, text=True,
                       check=True, capture_output=True)
        three = ["--cores", "3"]
        for options, said in (three, True), ([], False), ([*three, "--quiet"], False):
            done = subprocess.run([Threads.gpusim, "run", "--backend", BACKENDS[0], *options, elf],
                                  capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual("GCC's run-time of OpenMP" in done.stderr, said, done.stderr)


class Threads(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.build.mkdir(parents=True, exist_ok=True)
        cls.elf = cls.build / "guests.elf"
        subprocess.run([*CC, HERE / "guests.c", "-o", cls.elf], check=True)

    def each(self, what, *options):
        for backend in BACKENDS:
            with self.subTest(f"{what} {backend}"):
                yield subprocess.run([self.gpusim, "run", "--backend", backend, *options, self.elf,
                                      "--", what], capture_output=True, text=True, timeout=120)

    def test_as_many_threads_as_cores(self):
        for done in self.each("many", "--cores", "150"):
            self.assertRegex(done.stdout, r"\A149 threads, sum 14900, EAGAIN\n\Z")
            self.assertRegex(done.stderr, "no core is free for another thread.*--cores")

    def test_fewer_processors_than_cores_are_counted(self):
        says = "{0} processors, {0} may be used, {1} is the highest\n"
        for done in self.each("count", "--cores", "12"):
            self.assertEqual(done.stdout, says.format(12, 10))
        for done in self.each("count", "--cores", "12", "--cpus", "3"):
            self.assertEqual(done.stdout, says.format(3, 2))
        for done in self.each("count", "--cores", "2", "--cpus", "3"):
            self.assertEqual(done.returncode, 2)
            self.assertIn("--cpus 3: more than --cores, which is 2", done.stderr)

    def test_one_core_has_no_threads(self):
        for done in self.each("many"):
            self.assertEqual(done.stdout, "0 threads, sum 0, EAGAIN\n")

    def test_a_private_core_has_no_threads(self):
        for done in self.each("many", "--cores", "2", "--memory", "private"):
            self.assertEqual(done.stdout, 2 * "0 threads, sum 0, EAGAIN\n")
            self.assertRegex(done.stderr, "private machine has one core.*--memory shared")

    def test_deadlocks_are_reported(self):
        for done in self.each("deadlock", "--cores", "8"):
            self.assertEqual(done.returncode, 125)
            self.assertRegex(done.stderr, r"deadlock: 2 of 2 cores.*\n.*waits for ")
            self.assertIn("(other)", done.stderr)
        for done in self.each("pipe", "--cores", "8"):
            self.assertEqual(done.returncode, 125)
            self.assertRegex(done.stderr,
                             r"deadlock: 2 of 2 cores(.*\n)*.*core 1 waits for a pipe or a signal\n"
                             r"    in (__libc_)?read\(\)\n    called from "
                             r"read_pipe\(\)")

    def test_a_fault_ends_the_process(self):
        for done in self.each("crash", "--cores", "4"):
            self.assertEqual(done.returncode, 139)
            self.assertRegex(done.stderr, r"core 2: fault: store.*\n  in crash\(\).*\(crash")

    def test_exit_ends_all_threads(self):
        for done in self.each("exit", "--cores", "4", "--quiet"):
            self.assertEqual((done.returncode, done.stderr), (5, ""))

    def test_locks_of_a_thread_that_ended(self):
        for done in self.each("robust", "--cores", "4"):
            self.assertEqual((done.returncode, done.stdout), (
                0, 2 * "owner died: 1, consistent 0, unlock 0, again 1, lost 1\n"), done.stderr)

    def test_a_page_that_another_thread_closes(self):
        for threads in "1", "2":
            for done in self.each("close", "--cores", "3", "--threads", threads):
                self.assertEqual((done.returncode, done.stdout), (0, "20 times closed\n"),
                                 done.stderr)

    def test_a_timer_interrupts_a_loop(self):
        for done in self.each("alarm"):
            self.assertEqual((done.returncode, done.stdout), (0, "signal 14\n"), done.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    Threads.gpusim = pathlib.Path(sys.argv.pop(1)).resolve()
    Threads.build = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
