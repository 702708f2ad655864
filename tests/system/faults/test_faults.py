#!/usr/bin/env python3
"""What the user reads about faults, aborts and deadlocks: lines, call stacks, cores, holders of
locks.

  test_faults.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
CC = ["/usr/bin/aarch64-linux-gnu-gcc", "-w", "-static", "-pthread"]
CC_RISCV = ["/usr/bin/riscv64-linux-gnu-gcc", *CC[1:]]
STRIP = ["/usr/bin/aarch64-linux-gnu-strip", "--strip-debug", "-R", ".eh_frame"]
BACKENDS = os.environ.get("GPUSIM_TEST_BACKENDS", "simd scalar").split()
NO_CFI = ["-fno-asynchronous-unwind-tables", "-fno-unwind-tables"]
# How frames are found, and whether lines are known. RISC-V's GCC writes no call frame information
# but with -g; Debian's C library there has it for a quarter of its functions.
PROGRAMS = {
    "eh_frame": (["-O2", "-g"], True),
    "unoptimised": (["-O0", "-g"], True),
    "no_frame_pointer": (["-O2", "-g", "-fomit-frame-pointer"], True),
    "debug_frame": (["-O2", "-g", *NO_CFI], True),
    "signed_returns": (["-O2", "-g", "-mbranch-protection=standard"], True),
    "no_debug_info": (["-O2"], False),
    "frame_pointers": (["-O1", "-fno-omit-frame-pointer", *NO_CFI], False),
    "code": (["-O2", "-fomit-frame-pointer", *NO_CFI], False),
    "riscv64_debug_frame": (["-O2", "-g"], True),
    "riscv64_code": (["-O2"], False),
    "riscv64_code_small": (["-Os"], False),
    "riscv64_code_unoptimised": (["-O0"], False),
}
SOURCE = (HERE / "guests.c").read_text().splitlines()
LINE = {m[1]: number for number, text in enumerate(SOURCE, 1)
        if (m := re.search(r"// at (\w+)", text))}

# Function and marked line, the innermost first; "=": interrupted by a signal. A function that is
# inlined, or left out where calls in tail position are jumps, has a "?".
INNER = ["?inner:inner", "leaf:leaf"]
STACKS = {
    "load": [*INNER, "with_alloca:with_alloca", "recurse:recurse_end", "recurse:recurse",
             "main:main_load"],
    "smash": ["__stack_chk_fail:", "smash:"],
    "tail": [*INNER, "with_alloca:with_alloca", "?tail:", "calls_tail:calls_tail", "main:"],
    "call": ["call_nothing:call_nothing", "main:main_call"],
    "strlen": ["__strlen_\\w+|strlen:", "measure:measure", "main:"],
    "abort": ["abort:", "give_up:give_up", "main:main_abort"],
    "assert": ["__assert_fail:", "insist:insist", "main:main_assert"],
    "handler": [*INNER, "handler:handler", "=", "raise:", "raises:raises", "main:main_handler"],
    "fault_handler": [*INNER, "handler:handler", "=divides:divides", "main:main_fault_handler"],
}
STATUS = {"abort": 134, "assert": 134, "smash": 134, "overwrite": 135}


def pattern(frames, has_lines):
    """A regular expression for the lines of a call stack."""
    text = ""
    if not has_lines:  # calls of a function by itself are one line
        frames = [f for i, f in enumerate(frames) if i == 0
                  or f.split(":")[0] != frames[i - 1].split(":")[0]]
    for i, frame in enumerate(frames):
        optional = frame.startswith("?")
        interrupted = frame.startswith("=")
        name, _, mark = frame.lstrip("?=").partition(":")
        where = rf" at guests\.c:{LINE[mark]}" if mark and has_lines else r"( at [\w.]+:\d+)?"
        how = (r"interrupted by a signal: " if interrupted else
               r"(in|called from) " if i <= 1 else r"called from ")
        one = rf"  {how}({name or '.*'})(\(\))?{where}\b.*\n"
        text += f"({one})?" if optional else one
    return text


class Faults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.build.mkdir(parents=True, exist_ok=True)
        cls.elf = {}
        for name, (options, _) in PROGRAMS.items():
            cls.elf[name] = cls.build / f"{name}.elf"
            subprocess.run([*(CC_RISCV if name.startswith("riscv64") else CC), *options,
                            HERE / "guests.c", "-o", cls.elf[name]], check=True)
        cls.spmd = cls.build / "spmd.elf"
        subprocess.run([*CC, "-O1", "-g", "-mno-outline-atomics", "-nostdlib", "-ffreestanding",
                        "-Wl,-e,on_core",
                        HERE / "spmd.c", "-o", cls.spmd], check=True)

    def run_guest(self, elf, what, *options, backend="simd"):
        done = subprocess.run([self.gpusim, "run", "--quiet", "--backend", backend, *options, elf,
                               "--", what],
                              capture_output=True, text=True, timeout=300)
        self.last = done.stderr
        return done

    def call_spmd(self, function, *options, cores=64, backend="simd", arguments=("@core",)):
        given = [word for a in arguments for word in ("--arg", a)]
        done = subprocess.run([self.gpusim, "run", "--quiet", "--backend", backend, "--cores",
                               str(cores),
                               "--entry", function, *given, *options, self.spmd],
                              capture_output=True, text=True, timeout=300)
        self.last = done.stderr
        return done

    def test_call_stacks_however_they_are_found(self):
        for name, (_, has_lines) in PROGRAMS.items():
            for what, frames in STACKS.items():
                if what == "smash":  # its callers are gone
                    continue
                with self.subTest(f"{name} {what}"):
                    done = self.run_guest(self.elf[name], what)
                    self.assertEqual(done.returncode, STATUS.get(what, 139), self.last)
                    self.assertRegex(done.stderr,
                                     r"(?m)^core 0: .*\n" + pattern(frames, has_lines) + r"\Z")

    def test_without_any_information_but_symbols(self):
        bare, module = self.build / "bare.elf", self.build / "bare.gsm"
        subprocess.run([*STRIP, "-o", bare, self.elf["eh_frame"]], check=True)
        subprocess.run([self.gpusim, "translate", self.elf["eh_frame"], "-o", module],
                       check=True, capture_output=True)
        for program in (bare, module):
            for what in ("load", "abort", "handler"):
                with self.subTest(f"{program.name} {what}"):
                    done = self.run_guest(program, what)
                    # Inlined functions are not known.
                    frames = [f for f in STACKS[what] if not f.startswith("?")]
                    self.assertRegex(done.stderr,
                                     r"\Acore 0: .*\n" + pattern(frames, False) + r"\Z")

    def test_every_backend_and_both_memory_models(self):
        for backend in BACKENDS:
            for options in (["--cores", "1"], ["--cores", "66", "--memory", "private"]):
                with self.subTest(f"{backend} {options}"):
                    done = self.run_guest(self.elf["eh_frame"], "load", *options, backend=backend)
                    who = "core 0" if len(options) == 2 else r"cores 0-65 \(66 cores\)"
                    self.assertRegex(done.stderr, rf"\A{who}: fault: load .*, address 0x18 \(a "
                                                  rf"null pointer\?\)\n"
                                     + pattern(STACKS["load"], True) + r"\Z")

    def test_stacks_that_are_destroyed(self):
        elf = self.elf["eh_frame"]
        done = self.run_guest(elf, "smash")
        self.assertEqual(done.returncode, 134)
        self.assertRegex(done.stderr, r"core 0: ended by its own signal 6 \(SIGABRT\)\n" +
                         pattern(STACKS["smash"], True))
        done = self.run_guest(elf, "overwrite")
        self.assertRegex(done.stderr,
                         r"address 0x4141414141414141\n  in overwritten\(\) at .*: ret at pc .*\n"
                         r"  which would return to 0x4141414141414141, where no code "
                         r"is: "
                         r"the stack may be overwritten\n\Z")

    def test_endless_recursion_is_cut(self):
        done = self.run_guest(self.elf["unoptimised"], "endless")
        self.assertRegex(done.stderr,
                         r"\Acore 0: fault: stack overflow .*\n  in (fill|endless)\(\) .*\n"
                         rf"  called from endless\(\) at guests\.c:{LINE['endless']} "
                         r"\(\d+ times\)\n  and more callers\n\Z")

    def test_locks_name_their_holders(self):
        for elf, backend in [*(("eh_frame", backend) for backend in BACKENDS),
                             ("riscv64_debug_frame", BACKENDS[0])]:
            with self.subTest(f"{elf} {backend}"):
                done = self.run_guest(self.elf[elf], "locks", "--cores", "4", backend=backend)
                self.assertEqual(done.returncode, 125)
                lock = r"    in \w*pthread_mutex_lock\(\)\n" \
                       rf"    called from lock_in_turn\(\) at guests\.c:{LINE['lock_in_turn']}\n"
                self.assertRegex(done.stderr, r"deadlock: 2 of 2 cores")
                self.assertRegex(done.stderr,
                                 r"  core 0 waits for mutex 0x\w+ \(second\), which core 1 holds\n"
                                 + lock +
                                 rf"    called from main\(\) at guests\.c:{LINE['main_locks']}\n")
                self.assertRegex(done.stderr,
                                 r"  core 1 waits for mutex 0x\w+ \(first\), which core 0 holds\n"
                                 + lock +
                                 rf"    called from other_order\(\) at "
                                 rf"guests\.c:{LINE['other_order']}\n")
        done = self.run_guest(self.elf["eh_frame"], "left_locked", "--cores", "4")
        self.assertRegex(done.stderr,
                         r"core 0 waits for mutex 0x\w+ \(left_locked\), held by a thread "
                         r"that has ended\n    in \w*pthread_mutex_lock\(\)\n    "
                         r"called from "
                         rf"main\(\) at guests\.c:{LINE['main_left_locked']}\n\Z")
        done = self.run_guest(self.elf["eh_frame"], "again", "--cores", "4")
        self.assertRegex(done.stderr,
                         r"core 0 waits for mutex 0x\w+ \(first\), which it holds itself\n")

    def test_a_wait_for_a_thread_names_its_core(self):
        done = self.run_guest(self.elf["eh_frame"], "join", "--cores", "4")
        self.assertRegex(done.stderr, r"core 0 waits for the end of core 1's thread, futex 0x\w+\n"
                                      r"    in \w*pthread\w*join\w*\(\)\n    called from "
                                      rf"main\(\) at guests\.c:{LINE['main_join']}\n")
        self.assertRegex(done.stderr,
                         r"core 1 waits for mutex 0x\w+ \(first\), which core 0 holds\n")

    def test_cores_that_stop_alike_share_a_report(self):
        stats = self.build / "stats.json"
        done = self.call_spmd("fault_in_two_places", "--stats", str(stats), cores=300)
        self.assertEqual(done.returncode, 139)
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 6, self.last)
        self.assertRegex(lines[0], r"^cores 0-99 \(100 cores\): fault: load .*, addresses 0x100000 "
                                   r"to 0x100318$")
        self.assertRegex(lines[1], r"^  in touch\(\) at spmd\.c:\d+: ldr ")
        self.assertRegex(lines[2], r"^  called from fault_in_two_places\(\) at spmd\.c:\d+$")
        self.assertRegex(lines[3], r"^cores 100-299 \(200 cores\): fault: load ")
        self.assertNotEqual(lines[2], lines[5])
        reports = json.loads(stats.read_text())["fault_reports"]
        self.assertEqual([(r["cores"], r["core_list"]) for r in reports],
                         [(100, "0-99"), (200, "100-299")])
        self.assertEqual([f["function"] for f in reports[0]["stack"]],
                         ["touch", "fault_in_two_places"])
        self.assertEqual(reports[0]["addresses"], ["0x100000", "0x100318"])

    # A core that waits for one that was stopped is no deadlock.

    def test_who_was_stopped_decides_the_status(self):
        cases = [("barrier_without", "limit", ["--max-instructions", "20000"], 124,
                  "reached --max-instructions"),
                 ("barrier_without", "fault", [], 139, "stopped as said above"),
                 ("barrier_without", "status", [], 7, "core 5 had ended with status 7")]
        for function, how, options, status, why in cases:
            for backend in BACKENDS:
                with self.subTest(f"{how} {backend}"):
                    done = self.call_spmd(function, *options, backend=backend,
                                          arguments=("@core", "@cores", {"limit": "1", "fault": "2",
                                                                         "status": "3"}[how]))
                    self.assertEqual(done.returncode, status, self.last)
                    self.assertNotIn("deadlock", done.stderr)
                    self.assertRegex(done.stderr, rf"63 of 64 cores were left waiting .*{why}")
                    self.assertRegex(done.stderr, r"cores 0-4, 6-63 \(63 cores\) wait for futex "
                                                  r"0x\w+ \(arrived\)")
                    if how != "status":
                        self.assertRegex(done.stderr, r"\Acore 5: ")
        done = self.call_spmd("barrier_without", arguments=("@core", "@cores", "0"))
        self.assertEqual(done.returncode, 125)
        self.assertRegex(done.stderr,
                         r"\Adeadlock: 63 of 64 cores have not ended and none can go on\n")

    def test_a_thread_that_reaches_the_limit_decides_the_status(self):
        # It joins the thread, and returns 0 from main().
        done = self.run_guest(self.elf["eh_frame"], "spins", "--cores", "4", "--max-instructions",
                              "300000")
        self.assertEqual(done.returncode, 124, self.last)
        self.assertRegex(done.stderr,
                         r"\Acore 1: stopped: reached --max-instructions 300000, the limit of each "
                         r"core\n  in spin\(\) at ")


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    Faults.gpusim = pathlib.Path(sys.argv.pop(1)).resolve()
    Faults.build = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
