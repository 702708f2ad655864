#!/usr/bin/env python3
"""gpusim run KERNELS.ptx: arguments, results, statistics, messages.

  test_ptx.py GPUSIM [UNITTEST ARGUMENT]...
"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

GPUSIM = sys.argv.pop(1)
SAXPY = str(pathlib.Path(__file__).with_name("saxpy.ptx"))


def run(*arguments):
    return subprocess.run([GPUSIM, "run", *arguments], capture_output=True, text=True, check=False,
                          timeout=100)


class Kernels(unittest.TestCase):
    def setUp(self):
        # pylint: disable=consider-using-with
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return str(pathlib.Path(self.folder.name) / name)

    def test_results_and_counts(self):
        n, threads = 1000, 4 * 256
        x = [0.5 * i for i in range(n)]
        y = [float(i % 7) for i in range(n)]
        pathlib.Path(self.path("x")).write_bytes(struct.pack(f"{n}f", *x))
        pathlib.Path(self.path("y")).write_bytes(struct.pack(f"{n}f", *y))
        for backend in ("scalar", "simd"):
            r = run(SAXPY, "--entry", "saxpy", "--grid", "4", "--block", "256",
                    "--backend", backend, "--arg", str(n), "--arg", "2.5",
                    "--arg", "file:" + self.path("x"),
                    "--arg", f"file:{self.path('y')}>{self.path('out')}",
                    "--stats", self.path("stats"))
            self.assertEqual((r.returncode, r.stdout), (0, ""), r.stderr)
            out = struct.unpack(f"{n}f", pathlib.Path(self.path("out")).read_bytes())
            self.assertEqual(list(out), [2.5 * a + b for a, b in zip(x, y)])
            stats = json.loads(pathlib.Path(self.path("stats")).read_text(encoding="ascii"))
            self.assertEqual(stats["backend"], backend)
            kernel = stats["kernels"][0]
            self.assertEqual((kernel["name"], kernel["launches"], kernel["threads"]),
                             ("saxpy", 1, threads))
            self.assertEqual(kernel["opcodes"]["fma.rn.f32"], n)
            self.assertEqual(kernel["opcodes"]["ld.global.f32"], 2 * n)
            self.assertEqual(kernel["opcodes"]["setp.ge.s32"], threads)
            self.assertEqual(kernel["opcodes"]["ret"], threads)
            self.assertEqual(kernel["instructions"], 11 * threads + 9 * n)
            self.assertEqual(stats["guest_instructions"], kernel["instructions"])
            self.assertEqual(stats["classes"]["float_arithmetic"], n)
            self.assertEqual(sum(stats["classes"].values()), kernel["instructions"])

    def test_a_fault_has_its_place(self):
        r = run(SAXPY, "--entry", "saxpy", "--grid", "2", "--block", "32",
                "--arg", "64", "--arg", "1.0", "--arg", "0", "--arg", "buffer:256")
        self.assertEqual(r.returncode, 139)
        self.assertIn("kernel 'saxpy', block (0,0,0), thread (0,0,0)", r.stderr)
        self.assertIn("null pointer", r.stderr)
        self.assertIn("saxpy.ptx:32: ld.global.f32", r.stderr)

    def test_messages(self):
        cases = [
            (["--grid", "1"], "--entry says which of its kernels"),
            (["--entry", "nobody"], "no kernel 'nobody'; there are: saxpy, textured"),
            (["--entry", "textured"], "instruction 'tex' is not supported"),
            (["--entry", "saxpy"], "has 4 parameters, and there are 0 --arg"),
            (["--entry", "saxpy", "--grid", "0"], "--grid 0: expected X, X,Y or X,Y,Z"),
            (["--entry", "saxpy", "--block", "2,3,4,5"], "--block 2,3,4,5: expected"),
            (["--entry", "saxpy", "--cores", "5"], "--cores is not for kernels"),
            (["--entry", "saxpy", "--arg", "x", "--arg", "1.0", "--arg", "0", "--arg", "0"],
             "--arg x: expected an integer"),
            (["--entry", "saxpy", "--arg", "1", "--arg", "1.0", "--arg", "buffer:0", "--arg", "0"],
             "--arg buffer:0: expected a size"),
            (["--entry", "saxpy", "--arg", "0x100000000", "--arg", "1.", "--arg", "0",
              "--arg", "0"], "does not fit the parameter's 4 bytes"),
            (["--entry", "saxpy", "--block", "2000", "--arg", "1", "--arg", "1", "--arg", "0",
              "--arg", "0"], "at most 1024"),
        ]
        for arguments, message in cases:
            with self.subTest(arguments=arguments):
                r = run(SAXPY, *arguments)
                self.assertEqual(r.returncode, 2, r.stderr)
                self.assertIn(message, r.stderr)
        r = run(GPUSIM, "--grid", "5")
        self.assertEqual(r.returncode, 2)
        self.assertIn("--grid is for kernels", r.stderr)

    def test_bad_text(self):
        path = pathlib.Path(self.path("bad.ptx"))
        path.write_text(".version 9.0\n.target sm_80\n.visible .entry k( {\n", encoding="ascii")
        r = run(str(path))
        self.assertEqual(r.returncode, 2)
        self.assertIn("bad.ptx:3: ", r.stderr)


if __name__ == "__main__":
    unittest.main()
