#!/usr/bin/env python3
"""gpusim run KERNELS.ptx --check: kernels with one fault each, and the same without it.

  test_check.py GPUSIM [UNITTEST ARGUMENT]...

faults.ptx is faults.cu by nvcc -ptx -lineinfo -arch=compute_80. A line of faults.cu that ends in
"FAULT name" is the one that the report has to name.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

GPUSIM = sys.argv.pop(1)
FOLDER = pathlib.Path(__file__).parent
PTX = FOLDER / "faults.ptx"
LINES = {line.split("FAULT ")[1].strip(): number
         for number, line in enumerate((FOLDER / "faults.cu").read_text().splitlines(), 1)
         if "// FAULT " in line}

# name: parameters of the mangled name, arguments, block, what is found, a thread of it or None,
# words of the report, other options
OUT = "buffer:4096"
CASES = {
    "out_of_bounds": ("Pii", ["buffer:256", "64"], 128, "out of bounds", [64, 0, 0],
                      ["writes 4 bytes", "0 bytes behind the end of argument buffer:256"], []),
    "misaligned": ("Pc", [OUT], 32, "misaligned", [5, 0, 0], ["multiple of 4"], []),
    "race": ("PKiPi", [OUT, OUT], 128, "race", None, ["part+0x", "writes", "reads"], []),
    "warp_race": ("Pi", [OUT], 32, "race", None, ["both are in one warp"], []),
    "atomic_race": ("Pi", [OUT], 64, "race", None, ["updates atomically"], []),
    "ended_before_barrier": ("Pii", [OUT, "48"], 64, "divergent barrier", [48, 0, 0],
                             ["15 others ended", "48 threads of the block"], []),
    "two_barriers": ("Pi", [OUT], 64, "divergent barrier", None, ["while thread"], []),
    "uninitialised": ("Pi", [OUT], 64, "uninitialised", [56, 0, 0], ["part+0x1c"], []),
    "deadlock": ("Pi", [OUT], 64, "deadlock", None, ["32 threads wait"], []),
    "shared_bounds": ("Pi", [OUT], 64, "out of bounds", [63, 0, 0], ["shared memory"],
                      ["--shared", "256"]),
}


def symbol(name, is_bad):
    return f"_Z{len(name)}{name}ILb{int(is_bad)}EEv{CASES[name][0]}"


class Check(unittest.TestCase):
    def setUp(self):
        # pylint: disable=consider-using-with
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def run_kernel(self, name, is_bad, backend, checks="all"):
        stats = pathlib.Path(self.folder.name) / "stats"
        _, arguments, block, _, _, _, more = CASES[name]
        command = [GPUSIM, "run", str(PTX), "--entry", symbol(name, is_bad), "--block", str(block),
                   "--backend", backend, "--stats", str(stats), "--quiet", *more]
        for argument in arguments:
            command += ["--arg", argument]
        if checks:
            command += ["--check", checks]
        r = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
        return r, json.loads(stats.read_text(encoding="utf-8")) if stats.exists() else {}

    def test_each_fault_is_found_and_its_repair_is_not(self):
        for name, (_, _, _, kind, thread, words, _) in CASES.items():
            for backend in ("scalar", "simd"):
                with self.subTest(name=name, backend=backend):
                    r, stats = self.run_kernel(name, True, backend)
                    kinds = {f["kind"] for f in stats["findings"]}
                    self.assertEqual(kinds, {kind}, r.stderr)
                    self.assertNotEqual(r.returncode, 0)
                    first = stats["findings"][0]
                    if thread:
                        self.assertEqual(first["thread"], thread, r.stderr)
                    for word in words:
                        self.assertIn(word, first["text"])
                    self.assertIn(f"faults.cu:{LINES[name]}", r.stderr)
                    self.assertIn("block (0,0,0)", first["text"])
                    r, stats = self.run_kernel(name, False, backend)
                    self.assertEqual((r.returncode, r.stderr, stats["findings"]), (0, "", []))

    def test_status_and_choice(self):
        r, stats = self.run_kernel("race", True, "simd")
        self.assertEqual((r.returncode, stats["exit_status"]), (66, 66))
        r, stats = self.run_kernel("race", True, "simd", "memory,barriers,uninitialised")
        self.assertEqual((r.returncode, stats["findings"]), (0, []))
        r, stats = self.run_kernel("race", True, "simd", "")
        self.assertNotIn("findings", stats)
        r, _ = self.run_kernel("race", True, "simd", "memory,wishes")
        self.assertEqual(r.returncode, 2)
        self.assertIn("expected all, or some of memory, races", r.stderr)

    def test_results_and_counts_are_those_without(self):
        for backend in ("scalar", "simd"):
            _, checked = self.run_kernel("race", False, backend)
            _, plain = self.run_kernel("race", False, backend, "")
            self.assertEqual(checked["kernels"], plain["kernels"])


if __name__ == "__main__":
    unittest.main()
