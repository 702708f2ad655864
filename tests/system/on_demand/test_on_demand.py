#!/usr/bin/env python3
"""A program that is translated where its cores come does and counts what it does when it is
translated as a whole: an ELF file against the module made of it.

  test_on_demand.py GPUSIM ISA BUILD_FOLDER [UNITTEST ARGUMENT]...
"""

import json
import pathlib
import re
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "differential"))
import guest_programs  # noqa: E402

COMPILER = "/usr/bin/{}-linux-gnu-gcc"
FLAGS = ["-w", "-static", "-pthread"]
MACHINES = [
    ["--backend", "scalar"],
    ["--backend", "simd"],
    ["--backend", "simd", "--native-after", "0"],
    ["--backend", "simd", "--no-native"],
    ["--backend", "simd", "--cores", "5", "--memory", "private"],
    ["--backend", "scalar", "--cores", "2", "--memory", "private"],
]


class OnDemand(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.programs = {}
        for level in ("-O0", "-O2"):
            # Paths of the same length: a guest sees them.
            elf, module = (cls.build / kind / f"guest{level}" for kind in ("elf", "gsm"))
            for path in (elf, module):
                path.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run([COMPILER.format(cls.isa), *FLAGS, level, HERE / "guest.c", "-lm", "-o",
                            elf], check=True)
            subprocess.run([cls.gpusim, "translate", elf, "-o", module], check=True,
                           capture_output=True)
            cls.programs[level] = (elf, module)

    def without_callers(self, text):
        """A module has no call frame information, and RISC-V code keeps no frame pointers."""
        if self.isa == "aarch64":
            return text
        return re.sub(r"( \(\d+ times\)|\n  (called from|which would return) .*)", "", text)

    def run_one(self, program, options, arguments):
        stats, coverage = self.build / "stats.json", self.build / "coverage.txt"
        for path in (stats, coverage):
            path.unlink(missing_ok=True)
        done = subprocess.run(
            [self.gpusim, "run", "--quiet", "--stats", stats, "--isa-coverage", coverage, *options,
             program, "--", *arguments], capture_output=True, text=True, timeout=120)
        counts = json.loads(stats.read_text())
        folder = str(program.parent)
        return {"status": done.returncode, "output": done.stdout,
                "diagnosis": self.without_callers(done.stderr.replace(folder, "")),
                "instructions": counts["guest_instructions"], "classes": counts["classes"],
                "coverage": coverage.read_text()}

    def compare(self, level, options, arguments=()):
        with self.subTest(f"{level} {' '.join(options)} {arguments}"):
            elf, module = self.programs[level]
            by_need, whole = (self.run_one(p, options, arguments) for p in (elf, module))
            self.assertEqual(by_need, whole)
            return by_need

    def test_results_and_counts(self):
        for level in self.programs:
            for machine in MACHINES:
                done = self.compare(level, machine)
                self.assertNotEqual(done["output"], "")

    def test_signal_handlers(self):
        for machine in MACHINES:
            done = self.compare("-O2", machine, ["fault"])
            self.assertIn("3 faults\n", done["output"])

    def test_threads(self):
        # How long threads wait for each other depends on where slices end.
        elf, module = self.programs["-O2"]
        for machine in MACHINES[:4]:
            with self.subTest(machine):
                runs = [self.run_one(p, [*machine, "--cores", "4"], ["threads"])
                        for p in (elf, module)]
                self.assertEqual(runs[0]["output"], runs[1]["output"])
                self.assertEqual(runs[0]["status"], runs[1]["status"])

    def test_unknown_instruction(self):
        for machine in MACHINES:
            done = self.compare("-O2", machine, ["dormant"])
            self.assertEqual(done["status"], 128 + 4)
            self.assertRegex(done["diagnosis"], r"in dormant")

    def test_jump_to_no_code(self):
        for machine in MACHINES:
            self.assertEqual(self.compare("-O2", machine, ["nowhere"])["status"], 128 + 11)

    def test_data_among_code(self):
        if self.isa != "riscv64":
            self.skipTest("instructions of one length")
        marked, stripped, module = (self.build / f"data.{kind}" for kind in ("elf", "bin", "gsm"))
        subprocess.run([COMPILER.format(self.isa), "-nostdlib", "-static",
                        HERE / "data_among_code.S", "-o", marked], check=True)
        subprocess.run([COMPILER.format(self.isa).replace("gcc", "strip"), marked, "-o", stripped],
                       check=True)
        subprocess.run([self.gpusim, "translate", marked, "-o", module], check=True,
                       capture_output=True)
        for program in (marked, stripped, module):
            with self.subTest(program.name):
                done = self.run_one(program, ["--cores", "8"], [])
                self.assertEqual((done["status"], done["instructions"]), (7, 8 * 11))

    def test_register_of_one_move(self):
        if self.isa != "aarch64":
            self.skipTest("vector registers are AArch64's")
        program = self.build / "one_move.elf"
        subprocess.run([COMPILER.format(self.isa), "-nostdlib", "-static", HERE / "one_move.S",
                        "-o", program], check=True)
        self.assertEqual(self.run_one(program, [], [])["status"], 7)

    def test_lanes_that_come_to_new_code_are_waited_for(self):
        isa = {"aarch64": guest_programs.AARCH64, "riscv64": guest_programs.RISCV64}[self.isa]
        elf, module = (self.build / f"edges.{kind}" for kind in ("elf", "gsm"))
        subprocess.run([isa.compiler, *isa.flags, HERE / "edges.c", *isa.runtime, "-lgcc", "-o",
                        elf], check=True)
        subprocess.run([self.gpusim, "translate", elf, "-o", module], check=True,
                       capture_output=True)
        lost = {}
        for program in (elf, module):
            stats = self.build / "lanes.json"
            subprocess.run([self.gpusim, "run", "--quiet", "--backend", "simd", "--cores", "256",
                            "--threads", "1", "--stats", stats, program], timeout=120)
            lanes = json.loads(stats.read_text())["divergence"]
            self.assertEqual(lanes["alone_lanes"], 0)
            lost[program] = lanes["diverged_lanes"] + lanes["asleep_lanes"]
        self.assertLess(lost[elf], 1.2 * lost[module])

    def test_limits(self):
        # Cores stop at the same ends of blocks.
        for limit in (1, 100, 1234, 3001, 4567, 9876, 20011):
            for machine in MACHINES:
                self.compare("-O2", [*machine, "--max-instructions", str(limit)])


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    OnDemand.gpusim, OnDemand.isa, OnDemand.build = *sys.argv[1:3], pathlib.Path(sys.argv[3])
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
