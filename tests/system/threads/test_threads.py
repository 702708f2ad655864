#!/usr/bin/env python3
"""Threads of one process on simulated cores: how many there can be, and how they end.

  test_threads.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...
"""

import json
import os
import pathlib
import re
import shutil
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


class Sharing(unittest.TestCase):
    """More threads than cores."""

    # What they print, as under Linux, by the number of threads.
    SAYS = {("mutex", 32): "mutex: 99200", ("condition", 12): "condition: 210183",
            ("barrier", 32): "barrier: 0", ("spin", 6): "spin: 0", ("yield", 12): "yield: 0",
            ("compute", 32): "compute: 895999999968", ("pipe", 12): "pipe: 9748500",
            ("sleep", 32): "sleep: 496", ("waves", 12): "waves: 1320",
            ("signals", 12): "signals: 1", ("alarm", 12): "alarm: 1",
            ("masks", 12): "masks: 0", ("robust", 12): "robust: 12",
            ("inherit", 12): "inherit: 3300", ("semaphore", 12): "semaphore: 66",
            ("processes", 6): "processes: 150", ("system_v", 12): "12 wait\nsystem_v: 66",
            ("fork", 6): "fork: 15", ("exit", 12): "", ("leave", 12): "the first thread has left"}
    STATUS = {"exit": 5, "leave": 7}
    NOT_OF_QEMU = ["robust"]  # its user mode keeps no list of robust locks

    @classmethod
    def setUpClass(cls):
        Threads.build.mkdir(parents=True, exist_ok=True)
        cls.elf = {}
        for isa in guest_programs.AARCH64, guest_programs.RISCV64:
            cls.elf[isa.name] = Threads.build / f"sharing.{isa.name}.elf"
            subprocess.run([isa.compiler, "-O1", "-static", "-pthread", HERE / "sharing.c", "-o",
                            cls.elf[isa.name]], check=True)

    def run_it(self, *words, options=(), isa=guest_programs.AARCH64, backend=BACKENDS[0]):
        return subprocess.run([Threads.gpusim, "run", "--backend", backend, *options,
                               self.elf[isa.name], "--", *map(str, words)], capture_output=True,
                              text=True, timeout=120)

    def expect(self, done, what, threads):
        self.assertEqual((done.returncode, done.stdout.strip()),
                         (self.STATUS.get(what, 0), self.SAYS[what, threads]), done.stderr)

    def test_as_with_a_core_for_each(self):
        runs = [(BACKENDS[0], guest_programs.AARCH64, 1), (BACKENDS[0], guest_programs.AARCH64, 3),
                (BACKENDS[0], guest_programs.RISCV64, 2),
                *[(backend, guest_programs.AARCH64, 2) for backend in BACKENDS[1:]]]
        for backend, isa, cores in runs:
            for what, threads in self.SAYS:
                with self.subTest(f"{what} {backend} {isa.name} {cores}"):
                    done = self.run_it(what, threads, options=["--cores", str(cores)], isa=isa,
                                       backend=backend)
                    self.expect(done, what, threads)
                    self.assertNotIn("note", done.stderr)

    @unittest.skipUnless(shutil.which("qemu-aarch64"), "needs qemu-aarch64")
    def test_as_with_qemu(self):
        for what, threads in self.SAYS:
            if what in self.NOT_OF_QEMU:
                continue
            with self.subTest(what):
                done = subprocess.run(["qemu-aarch64", self.elf["aarch64"], what, str(threads)],
                                      capture_output=True, text=True, timeout=120)
                self.expect(done, what, threads)

    def test_each_run_is_the_same(self):
        options = ["--cores", "2", "--threads", "1"]
        for what, threads in ("mutex", 32), ("spin", 6), ("barrier", 32):
            with self.subTest(what):
                counts = [re.search("[0-9,]+ guest instructions",
                                    self.run_it(what, threads, options=options).stderr)[0]
                          for _ in range(2)]
                self.assertEqual(counts[0], counts[1])

    def test_a_deadlock_tells_of_threads_without_a_core(self):
        done = self.run_it("deadlock", 12, options=["--cores", "2"])
        self.assertEqual(done.returncode, 125)
        self.assertIn("deadlock: 13 of 13 threads have not ended", done.stderr)
        self.assertRegex(done.stderr, r"1\d threads without a core \([0-9, -]+\) wait for .*mutex")
        self.assertRegex(done.stderr, r"in (__)?pthread_mutex_lock.*\n"
                         r"    called from lock_twice\(\)")
        several = re.findall(r"(\d+) threads without a core", done.stderr)
        one = re.findall(r"(?m)^  .*\bthread \d+ without a core waits?", done.stderr)
        self.assertEqual(sum(map(int, several)) + len(one), 11, done.stderr)

    def test_a_thread_without_a_core_is_named_that_holds_a_lock(self):
        for isa in guest_programs.AARCH64, guest_programs.RISCV64:
            done = self.run_it("held", 2, options=["--cores", "1"], isa=isa)
            self.assertEqual(done.returncode, 125)
            self.assertRegex(done.stderr, r"  core 0 waits for mutex .*\(mutex\), which thread "
                             r"1001 without a core holds\n    in ")
            self.assertRegex(done.stderr, r"  thread 1000 without a core waits for the end of "
                             r"thread 1001 without a core, futex .*\n    in ")
            self.assertRegex(done.stderr, r"  thread 1001 without a core waits for a pipe or a "
                             r"signal\n(    .*\n)*    called from hold_for_ever\(\)")
            if isa == guest_programs.AARCH64:  # call frame information of some libraries ends early
                for function in "wait_for_lock", "main":
                    self.assertIn(f"    called from {function}()\n", done.stderr)

    def limits_told(self, done):
        """The cores that are told to have reached --max-instructions, as often as they are told."""
        cores = []
        for text in re.findall(r"(?m)^cores? ([0-9, -]+).*: stopped: reached --max", done.stderr):
            for part in text.split(","):
                first, _, last = part.strip().partition("-")
                cores += range(int(first), int(last or first) + 1)
        return sorted(cores)

    def test_a_core_at_its_limit_takes_no_other_thread(self):
        for backend in BACKENDS:
            for cores in (1, 2, 5) if backend != "cuda" else (2,):
                with self.subTest(f"{backend} {cores}"):
                    done = self.run_it("for_ever", 12, backend=backend, options=[
                        "--cores", str(cores), "--max-instructions", "50000"])
                    self.assertEqual(done.returncode, 124, done.stderr)
                    self.assertEqual(self.limits_told(done), list(range(cores)), done.stderr)
                    # Not all of them may have begun.
                    self.assertRegex(done.stderr, r"\n[1-9]\d* more threads? ends?: no core is "
                                     "left to go on, as each reached --max-instructions 50000\n")
                    count = re.search("([0-9,]+) guest instructions", done.stderr)[1]
                    count = int(count.replace(",", ""))
                    self.assertLess(abs(count - cores * 50000), cores * 100)

    def test_a_limit_wherever_it_comes(self):
        """Among others where a thread ends, and the next one comes to its core."""
        for limit in range(23000, 23800, 10):
            done = self.run_it("semaphore", 12, options=[
                "--cores", "2", "--max-instructions", str(limit)])
            self.assertIn(done.returncode, (0, 124), done.stderr)
            told = self.limits_told(done)
            self.assertEqual(told, sorted(set(told)), done.stderr)

    def test_a_checkpoint_keeps_threads_without_a_core(self):
        file = Threads.build / "sharing.gsc"
        for what, threads in ("condition", 12), ("compute", 32), ("spin", 6):
            with self.subTest(what):
                first = self.run_it(what, threads, options=[
                    "--cores", "2", "--checkpoint", file, "--checkpoint-every", "100000",
                    "--checkpoint-stop"])
                self.assertEqual((first.returncode, first.stdout), (123, ""), first.stderr)
                for backend in BACKENDS:
                    done = subprocess.run([Threads.gpusim, "run", "--backend", backend, "--resume",
                                           file], capture_output=True, text=True, timeout=120)
                    self.expect(done, what, threads)


class Crowd(unittest.TestCase):
    """Hundreds of threads on few cores, as under qemu-user."""

    C = [("cancel", 120), ("cancel_early", 120), ("kill", 200), ("limits", 200), ("detached", 300),
         ("ring", 200), ("tasks", 200)]
    CXX = [("async", 150), ("jthread", 100), ("barrier", 100)]
    SYSROOT = "/usr/{}-linux-gnu"

    @classmethod
    def setUpClass(cls):
        Threads.build.mkdir(parents=True, exist_ok=True)
        cls.elf = {}
        for isa in guest_programs.AARCH64, guest_programs.RISCV64:
            cxx = isa.compiler.removesuffix("gcc") + "g++"
            for name, words in (("c", [isa.compiler, HERE / "crowd.c", "-static", "-pthread"]),
                                ("cc", [cxx, "-std=c++20", HERE / "crowd.cc", "-static",
                                        "-pthread"]),
                                ("omp", [isa.compiler, HERE / "crowd_omp.c", "-fopenmp"]),
                                ("parts", [isa.compiler, HERE / "parts.c", "-static",
                                           "-pthread"])):
                elf = cls.elf[isa.name, name] = Threads.build / f"crowd_{name}.{isa.name}.elf"
                subprocess.run([*words, "-O1", "-o", elf], check=True)

    def compare(self, isa, name, *words, runs, environment=()):
        elf = self.elf[isa.name, name]
        sysroot = self.SYSROOT.format(isa.name)
        expected = subprocess.run(
            [f"qemu-{isa.name}", "-L", sysroot, elf, *map(str, words)], capture_output=True,
            text=True, timeout=120, env=os.environ | dict(e.split("=") for e in environment))
        self.assertEqual(expected.returncode, 0, expected.stdout)
        for options in runs:
            with self.subTest(f"{isa.name} {words} {options}"):
                done = subprocess.run(
                    [Threads.gpusim, "run", "--quiet", "--sysroot", sysroot, *options.split(),
                     *(f"--env={e}" for e in environment), elf, "--", *map(str, words)],
                    capture_output=True, text=True, timeout=120)
                self.assertEqual((done.returncode, done.stdout), (0, expected.stdout), done.stderr)

    def each(self, check):
        for isa in guest_programs.AARCH64, guest_programs.RISCV64:
            if shutil.which(f"qemu-{isa.name}"):
                check(isa)

    def test_pthreads(self):
        runs = ["--cores 1", "--cores 3 --threads 1", "--cores 64 --threads 2"]
        runs = [f"--backend {BACKENDS[0]} {run}" for run in runs]
        runs += [f"--backend {backend} --cores 2" for backend in BACKENDS[1:]]
        self.each(lambda isa: [self.compare(isa, "c", *words, runs=runs) for words in self.C])

    def test_threads_that_spin_hold_nobody_up(self):
        """50 of 300 threads spin: others executed ten times as much before they had turns in
        rounds, and on 64 cores in lockstep 2,988 million before calls gave the next turn. There it
        is 0.5 to 1.4 thousand million, which depends on the length of the program's path."""
        for isa in guest_programs.AARCH64, guest_programs.RISCV64:
            for cores, most in (3, 400_000_000), (64, 2_200_000_000):
                with self.subTest(isa=isa.name, cores=cores):
                    done = subprocess.run(
                        [Threads.gpusim, "run", "--backend", BACKENDS[0], "--cores", str(cores),
                         "--threads", "1", self.elf[isa.name, "c"], "--", "cancel", "300"],
                        capture_output=True, text=True, timeout=240)
                    self.assertEqual(done.stdout, "cancel: 300 of 300, cleaned\n", done.stderr)
                    count = re.search("([0-9,]+) guest instructions", done.stderr)[1]
                    self.assertLess(int(count.replace(",", "")), most)

    def test_a_thread_that_calls_again_and_again_lets_others_run(self):
        runs = [f"--backend {BACKENDS[0]} --cores 64 {more}" for more in ("", "--no-regroup")]
        self.each(lambda isa: [self.compare(isa, "c", "callers", n, runs=runs)
                               for n in (3, 32, 60)])

    def test_who_waits_for_part_of_what_a_call_moves(self):
        self.each(lambda isa: self.compare(isa, "parts", runs=[
            f"--backend {backend} --cores {cores}" for backend in BACKENDS for cores in (2, 4)]))

    def test_threads_of_the_cxx_library(self):
        runs = [f"--backend {BACKENDS[0]} --cores {cores}" for cores in (1, 3)]
        self.each(lambda isa: [self.compare(isa, "cc", *words, runs=runs) for words in self.CXX])

    @unittest.skipUnless("simd" in BACKENDS, "dynamic programs need a backend of the host")
    def test_openmp_of_the_guest(self):
        runs = ["--backend simd --cores 3", "--backend simd --cores 1"]
        self.each(lambda isa: self.compare(isa, "omp", 2, runs=runs,
                                           environment=["OMP_NUM_THREADS=60"]))


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

    def test_more_threads_than_cores(self):
        for cores in "150", "1":
            for done in self.each("many", "--cores", cores):
                self.assertEqual((done.returncode, done.stdout),
                                 (0, "200 threads, sum 20000, all\n"), done.stderr)
                self.assertNotIn("note", done.stderr)

    def test_memory_for_the_stacks_ends(self):
        for done in self.each("many", "--cores", "2", "--memory-size", "64M"):
            self.assertRegex(done.stdout, r"\A[67] threads, sum \d+, EAGAIN\n\Z")
            self.assertRegex(done.stderr, r"memory is full: mmap \(a thread's stack\) of 8\.\d "
                                          r"MiB returns ENOMEM; --memory-size gives more than 64 ")

    @unittest.skipUnless("simd" in BACKENDS, "--check needs a backend of the host")
    def test_observers_of_threads_want_a_core_for_each(self):
        for done in self.each("many", "--cores", "150", "--check", "races"):
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

    def test_a_signal_that_comes_just_before_a_wait_ends_it(self):
        for options in "", "--slice 300", "--slice 4000":
            for done in self.each("signal", "--cores", "2", *options.split()):
                self.assertEqual((done.returncode, done.stdout), (0, "200 signals\n"),
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
