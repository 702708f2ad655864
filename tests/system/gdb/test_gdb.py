#!/usr/bin/env python3
"""gdb-multiarch at runs of gpusim: every core is a thread.

  test_gdb.py GPUSIM EXAMPLES_FOLDER BUILD_FOLDER [UNITTEST ARGUMENT]...
"""

import pathlib
import re
import subprocess
import sys
import unittest

from debugged import GDB, Run

HERE = pathlib.Path(__file__).resolve().parent
LIBC_ISAS = ("aarch64", "riscv64")


def square_sum(core):
    return sum((core + i) ** 2 for i in range(3))


def as_int(value):
    """As C's int wraps it."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def total(cores):
    return sum(map(square_sum, range(cores)))


class Gdb(unittest.TestCase):
    def setUp(self):
        if not GDB:
            self.fail("gdb-multiarch is not installed (scripts/packages.txt)")

    @classmethod
    def setUpClass(cls):
        cls.cores = {}
        for isa in ("aarch64", "riscv64", "riscv32"):
            folder = cls.build if isa == "aarch64" else cls.build / isa
            if (folder / "cores.elf").exists():
                cls.cores[isa] = folder / "cores.elf"
        cls.threads = {}
        for isa in LIBC_ISAS:
            if isa in cls.cores:
                cls.threads[isa] = cls.build / f"threads_{isa}.elf"
                subprocess.run([f"/usr/bin/{isa}-linux-gnu-gcc", "-O1", "-g", "-static", "-pthread",
                                HERE / "threads.c", "-o", cls.threads[isa]], check=True)

    def each_isa(self):
        self.assertIn("aarch64", self.cores)
        for isa, program in self.cores.items():
            with self.subTest(isa):
                yield program

    def assert_lines(self, text, *patterns):
        """The patterns occur in this order."""
        text = re.sub(r"(\w+)=\1@entry=", r"\1=", text)  # what arguments were on entry
        at = 0
        for pattern in patterns:
            found = re.compile(pattern, re.MULTILINE).search(text, at)
            self.assertTrue(found, f"no {pattern!r} (in its place) in:\n{text}")
            at = found.end()

    # --- one core

    def test_breakpoint_backtrace_and_finish(self):
        for program in self.each_isa():
            with Run(self.gpusim, program) as run:
                text = run.gdb("break square if x == 2", "continue", "backtrace", "finish",
                               "info breakpoints", "delete", "continue")
                self.assert_lines(text, r"Breakpoint 1, square \(x=2\)",
                                  r"#0 +square \(x=2\)", r"#1 .*work \(core=0\)",
                                  r"#2 .*gpusim_main \(\)", r"Value returned is \$1 = 4",
                                  r"breakpoint already hit 1 time", r"exited with code 05\]")
                self.assertEqual(run.finish(), 5, run.errors)

    def test_gdb_finds_the_program_by_itself(self):
        with Run(self.gpusim, self.cores["aarch64"]) as run:
            text = run.gdb("info files", "break work", "continue", "kill")
            self.assert_lines(text, r"cores\.elf", r"Breakpoint 1, work \(core=0\)")
            self.assertEqual(run.finish(), 137)
            self.assertIn("gdb: the debugger ended the run", run.errors)

    def test_gdb_reads_all_of_a_program_that_it_found(self):
        # GDB opens the file several times, and closes one of these.
        for isa, program in self.threads.items():
            with self.subTest(isa), Run(self.gpusim, program) as run:
                text = run.gdb("break main", "continue", "backtrace", "kill")
                self.assert_lines(text, r"#0 +main ")
                self.assertNotIn("Can't read data", text)
                self.assertEqual(run.finish(), 137)

    def test_steps_by_line_and_instruction(self):
        for program in self.each_isa():
            with Run(self.gpusim, program) as run:
                text = run.gdb("break work", "continue", "next", "next", "step", "info source",
                               "stepi", "stepi", "nexti", "until", "advance gpusim_barrier",
                               "backtrace 1", "continue", program=program)
                self.assert_lines(text, r"Breakpoint 1, work", r"Current source file is .*cores\.c",
                                  r"#0 .*gpusim_barrier", r"exited with code 05\]")
                self.assertEqual(run.finish(), 5, run.errors)

    def test_what_is_written_counts(self):
        for program in self.each_isa():
            with Run(self.gpusim, program) as run:
                text = run.gdb("break *square if x == 0", "continue", "set var x = 10",
                               "break gpusim_barrier", "continue", "print results[0]",
                               "set var results[0] = 7", "delete", "continue", program=program)
                self.assert_lines(text, r"\$1 = 105", r"exited with code 07\]")
                self.assertEqual(run.finish(), 7, run.errors)

    def test_registers(self):
        cases = {"aarch64": ("$x5", "$x1", "$fpcr", "$cpsr"),
                 "riscv64": ("$a5", "$a4", "$fcsr", "$frm"),
                 "riscv32": ("$a5", "$a4", "$fcsr", "$frm")}
        for isa, (whole, wide, control, flags) in cases.items():
            if isa not in self.cores:
                continue
            with self.subTest(isa), Run(self.gpusim, self.cores[isa], "--backend", "scalar") as run:
                text = run.gdb("break work", "continue", f"set {whole} = 0x1234567", f"p/x {whole}",
                               f"set {wide} = 3", f"print {wide}", f"p/x {control}",
                               f"info registers {flags}", "info all-registers", "x/2i $pc", "kill",
                               program=self.cores[isa])
                self.assert_lines(text, r"\$1 = 0x1234567", r"\$2 = 3", r"\$3 = 0x0",
                                  r"=> 0x[0-9a-f]+ <work")

    def test_wide_registers(self):
        cases = {"aarch64": "$v3.d.u[1]", "riscv64": "$fa0.double"}
        for isa, program in self.threads.items():
            with self.subTest(isa), Run(self.gpusim, program) as run:
                text = run.gdb("break main", "continue", f"set {cases[isa]} = 3",
                               f"print {cases[isa]}", "info all-registers", "kill", program=program)
                self.assert_lines(text, r"\$1 = 3")

    def test_watchpoints(self):
        for program in self.each_isa():
            with Run(self.gpusim, program, "--cores", 3) as run:
                text = run.gdb("watch results[2]", "rwatch total", "continue", "backtrace 1",
                               "info threads", "continue", "backtrace 1", "delete", "continue",
                               program=program)
                self.assert_lines(text, r"hit Hardware watchpoint 1: results\[2\]", "Old value = 0",
                                  f"New value = {square_sum(2)}", r"#0 +work \(core=2\)",
                                  r"^\* 3 ", r"Hardware read watchpoint 2: total", r"Value = 0",
                                  r"#0 .*gpusim_main", r"exited with code ")
                self.assertEqual(run.finish(), total(3) & 127, run.errors)

    # --- many

    def test_64_cores(self):
        for backend in "simd", "scalar":
            for program in self.each_isa():
                with Run(self.gpusim, program, "--cores", 64, "--backend", backend) as run:
                    text = run.gdb("break work if core == 37", "continue", "info threads",
                                   "print core", "thread apply 38 backtrace 1", "delete",
                                   "continue", program=program)
                    self.assert_lines(text, r"Thread 38 hit Breakpoint 1, work \(core=37\)")
                    lines = re.findall(r"(?m)^[ *] (\d+) +Thread \d+ \((.*?)\)", text)
                    self.assertEqual([int(n) for n, _ in lines], list(range(1, 65)), text)
                    self.assert_lines(text, r"^\* 38 ", r"\$1 = 37", r"#0 +work \(core=37\)")
                    self.assertEqual(run.finish(), total(64) & 127, run.errors)

    def test_each_core_hits_a_breakpoint(self):
        with Run(self.gpusim, self.cores["aarch64"], "--cores", 8) as run:
            text = run.gdb("break work", *8 * ["continue"], "continue")
            hits = re.findall(r"hit Breakpoint 1, work \(core=(?:core@entry=)?(\d+)\)", text)
            self.assertEqual(sorted(map(int, hits)), list(range(8)), text)
            self.assertEqual(run.finish(), total(8) & 127, run.errors)

    def test_one_core_steps_while_others_stand(self):
        for program in self.each_isa():
            with Run(self.gpusim, program, "--cores", 4) as run:
                text = run.gdb("break work if core == 2", "continue",
                               "set scheduler-locking on", "thread apply all print $pc",
                               "stepi", "stepi", "next", "thread apply all print $pc",
                               "tbreak gpusim_barrier", "continue", "print results[2]", "thread 2",
                               "set scheduler-locking off", "delete", "continue", program=program)
                places = re.findall(r"Thread (\d) \(.*\n\$\d+ = .*?(0x[0-9a-f]+)", text)
                self.assertEqual(len(places), 8, text)
                before, after = dict(places[:4]), dict(places[4:])
                self.assertEqual({n for n in before if before[n] != after[n]}, {"3"}, text)
                self.assert_lines(text, rf"= {square_sum(2)}$", "exited with code")
                self.assertEqual(run.finish(), total(4) & 127, run.errors)

    def test_4096_cores(self):
        with Run(self.gpusim, self.cores["aarch64"], "--cores", 4096) as run:
            text = run.gdb("break square if x == 4001", "continue", "backtrace 2", "info threads",
                           "delete", "watch total", "continue", "delete", "continue")
            self.assert_lines(text, r"Thread 4000 hit Breakpoint 1, square \(x=4001\)|"
                                    r"Thread 400[12] hit Breakpoint 1, square \(x=4001\)",
                              r"#1 .*work \(core=")
            self.assertEqual(len(re.findall(r"(?m)^[ *] \d+ +Thread \d+ ", text)), 4096)
            self.assert_lines(text, "hit Hardware watchpoint 2: total", "Old value = 0",
                              f"New value = {as_int(total(4096))}$")
            self.assertEqual(run.finish(), total(4096) & 127, run.errors)

    def test_4096_cores_of_riscv(self):
        if "riscv64" not in self.cores:
            return
        with Run(self.gpusim, self.cores["riscv64"], "--cores", 4096) as run:
            text = run.gdb("break work if core == 4095", "continue", "print core", "next", "next",
                           "delete", "continue", program=self.cores["riscv64"])
            self.assert_lines(text, r"Thread 4096 hit Breakpoint 1, work \(core=4095\)",
                              r"\$1 = 4095")
            self.assertEqual(run.finish(), total(4096) & 127, run.errors)

    # --- how runs stop and end

    def test_faults(self):
        for program in self.each_isa():
            with Run(self.gpusim, program, "--cores", 5, "--", "fault") as run:
                text = run.gdb("continue", "backtrace", "continue", "continue", program=program)
                self.assert_lines(text, r"Thread 5 received signal SIGSEGV",
                                  r"fault \(where=0x10\)",
                                  r"#1 .*gpusim_main")
                # The others wait at a barrier for the core that ended.
                self.assert_lines(text, r"none of the cores that may run can go on",
                                  r"cores 0-3 \(4 cores\) wait")

    def test_a_fault_ends_the_run(self):
        for program in self.each_isa():
            with Run(self.gpusim, program, "--cores", 1, "--", "fault") as run:
                text = run.gdb("continue", "continue", program=program)
                self.assert_lines(text, r"received signal SIGSEGV",
                                  r"Program terminated with signal SIGSEGV")
                self.assertEqual(run.finish(), 139)
                self.assertRegex(run.errors, "core 0: fault: store to memory that is not mapped")

    def test_a_fault_can_be_repaired(self):
        with Run(self.gpusim, self.cores["aarch64"], "--cores", 1, "--", "fault") as run:
            text = run.gdb("continue", "set $x0 = &turns", "signal 0",
                           program=self.cores["aarch64"])
            self.assert_lines(text, r"received signal SIGSEGV", r"exited with code 05\]")
            self.assertEqual(run.finish(), 5, run.errors)

    def test_interrupt(self):
        for program in self.each_isa():
            with Run(self.gpusim, program, "--cores", 64, "--", "spin") as run:
                text = run.gdb("continue", "print turns > 0", "set var go = 1", "continue",
                               program=program, interrupts=True)
                self.assert_lines(text, r"received signal SIGINT", r"\$1 = 1", "exited with code")
                self.assertEqual(run.finish(), total(64) & 127, run.errors)

    def test_detach_and_come_back(self):
        with Run(self.gpusim, self.cores["aarch64"], "--cores", 4, "--", "spin") as run:
            run.gdb("break work", "continue", "detach")
            text = run.gdb("print go", "backtrace", "set var go = 1", "detach",
                           program=self.cores["aarch64"])
            self.assert_lines(text, r"\$1 = 0", r"gpusim_main")
            self.assertEqual(run.finish(), total(4) & 127, run.errors)
            self.assertEqual(run.errors.count("the debugger detached"), 2)

    def test_the_end_of_gdb_is_the_end_of_the_run(self):
        with Run(self.gpusim, self.cores["aarch64"], "--cores", 4, "--", "spin") as run:
            run.gdb("break work", "continue")
            self.assertEqual(run.finish(), 137)

    def test_cores_that_wait_for_ever(self):
        with Run(self.gpusim, self.cores["aarch64"], "--cores", 3, "--", "lonely") as run:
            text = run.gdb("continue", "info threads", "monitor waits", "kill",
                           program=self.cores["aarch64"])
            self.assert_lines(text, "none of the cores that may run can go on", r"core 0 waits for",
                              r"gpusim_barrier")

    # --- programs with a C library

    def test_threads(self):
        for isa, program in self.threads.items():
            with self.subTest(isa), Run(self.gpusim, program, "--cores", 8) as run:
                text = run.gdb("break add if number == 2 && value == 7", "continue", "backtrace 2",
                               "info threads", "watch sums[2]", "continue", "delete", "continue",
                               program=program)
                self.assert_lines(text, r"hit Breakpoint 1, add \(number=2, value=7\)",
                                  r"#1 .*run \(argument=", r"\* \d +Thread 4 ", "Old value = 21",
                                  "New value = 28", "exited normally")
                self.assertEqual((run.finish(), run.output), (0, "sum 135\n"), run.errors)

    def test_threads_without_a_core(self):
        for isa, program in self.threads.items():
            with self.subTest(isa), Run(self.gpusim, program, "--cores", 1) as run:
                text = run.gdb("monitor threads", "break add if number == 0", "continue",
                               "monitor threads", "monitor cores", "delete", "continue",
                               program=program)
                self.assert_lines(text, "every thread has a core",
                                  r"Breakpoint 1, add \(number=0, value=0\)",
                                  r"^  .*threads? .*without a core.* waits? for a core\n    in ",
                                  r"threads? .*without a core.* at .*: waits? for a core",
                                  "exited normally")
                self.assertRegex(text, r"(?m)^core 0 at add: runs$")
                self.assertEqual((run.finish(), run.output), (0, "sum 135\n"), run.errors)

    def test_openmp(self):
        program = self.examples / "openmp" / "openmp_heat.elf"
        with Run(self.gpusim, program, "--cores", 16) as run:
            text = run.gdb("break main._omp_fn.0", "continue", "continue", "info threads",
                           "backtrace", "delete", "continue", program=program)
            self.assert_lines(text, r"hit Breakpoint 1, .*main\._omp_fn\.0", r"_omp_fn\.0",
                              "exited normally")
            threads = re.findall(r"(?m)^[ *] \d+ +Thread (\d+) ", text)
            self.assertEqual(sorted(map(int, threads)), list(range(1, 17)), text)
            self.assertEqual(run.finish(), 0, run.errors)
            self.assertIn("plate of 512 x 512 after 60 steps: 85.5822", run.output)

    def test_signals(self):
        for isa, program in self.threads.items():
            with self.subTest(isa):
                with Run(self.gpusim, program, "--", "abort") as run:
                    text = run.gdb("continue", "backtrace", "continue", program=program)
                    self.assert_lines(text, "received signal SIGABRT", r"main \(argc=.*threads\.c",
                                      "Program terminated with signal SIGABRT")
                    self.assertEqual(run.finish(), 134)
                with Run(self.gpusim, program, "--", "handler") as run:
                    text = run.gdb("continue", "break on_fault", "continue", "continue",
                                   program=program)
                    self.assert_lines(text, "received signal SIGSEGV",
                                      r"Breakpoint 1, on_fault \(signal=11\)",
                                      "exited with code 07")
                with Run(self.gpusim, program, "--", "handler") as run:
                    text = run.gdb("continue", program=program,
                                   before=["handle SIGSEGV nostop noprint pass"])
                    self.assert_lines(text, "exited with code 07")

    def test_private_memory(self):
        for isa, program in self.threads.items():
            with self.subTest(isa), Run(self.gpusim, program, "--cores", 3, "--memory", "private",
                                        "--", "read", stdin=subprocess.DEVNULL) as run:
                text = run.gdb("break main", "continue", "set var handled = 5", "thread 2",
                               "print handled", "thread 1", "print handled", "delete", "continue",
                               program=program)
                self.assert_lines(text, r"hit Breakpoint 1, main \(argc=2", r"\$1 = 0", r"\$2 = 5",
                                  "exited with code 01")

    def test_checkpoints(self):
        for isa, program in self.threads.items():
            with self.subTest(isa):
                file = self.build / f"{isa}.gsc"
                done = subprocess.run([self.gpusim, "run", "--quiet", "--cores", "8",
                                       "--checkpoint", file, "--checkpoint-every", "8000",
                                       "--checkpoint-stop", program], capture_output=True,
                              timeout=60, check=False)
                self.assertEqual(done.returncode, 123)
                with Run(self.gpusim, "--resume", file) as run:
                    text = run.gdb("break printf", "continue", "backtrace", "delete", "continue")
                    self.assert_lines(text, r"Breakpoint 1, .*printf", "main", "exited normally")
                    self.assertEqual((run.finish(), run.output), (0, "sum 135\n"), run.errors)

    # --- monitor

    def test_monitor(self):
        program = self.cores["aarch64"]
        with Run(self.gpusim, program, "--cores", 70) as run:
            text = run.gdb("monitor help", "break work if core == 3", "continue", "monitor cores",
                           "monitor groups", "monitor waits", "monitor tallies",
                           "monitor tallies 3", "monitor tallies 70", "monitor time",
                           "monitor bananas", "kill")
            self.assert_lines(text, "monitor tallies", r"cores 0-69 \(70 cores\) at work: runs",
                              "70 cores, groups of 64", "group 0:",
                              r"cores 0-63 \(64 cores\) at work", "group 1:", "no core waits",
                              r"all cores: \d+ instructions", r"core 3: \d+ instructions",
                              "expected a core from 0 to 69", "simulated time is not on",
                              "bananas: no such command")
        with Run(self.gpusim, program, "--simulated-time", "--timing", "et-soc1") as run:
            text = run.gdb("break work", "continue", "monitor time", "monitor time 0", "kill")
            self.assert_lines(text, r"^\d+ cycles", r"core 0: \d+ cycles")


if __name__ == "__main__":
    Gdb.gpusim = pathlib.Path(sys.argv.pop(1)).resolve()
    Gdb.examples = pathlib.Path(sys.argv.pop(1)).resolve()
    Gdb.build = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
