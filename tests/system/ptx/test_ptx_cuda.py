#!/usr/bin/env python3
"""gpusim run KERNELS.ptx --backend cuda: what scalar gives, in memory and counts, and refusals.

  test_ptx_cuda.py GPUSIM [UNITTEST ARGUMENT]...
"""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

GPUSIM = sys.argv.pop(1)
HERE = pathlib.Path(__file__).parent
WARPS, SAXPY, TRANSPOSE, STACKS = (str(HERE / f"{name}.ptx")
                                   for name in ("warps", "saxpy", "transpose", "stacks"))


class KernelsOnDevice(unittest.TestCase):
    def setUp(self):
        # pylint: disable=consider-using-with
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return str(pathlib.Path(self.folder.name) / name)

    def run_on(self, backend, *arguments):
        return subprocess.run([GPUSIM, "run", *arguments, "--backend", backend, "--quiet"],
                              capture_output=True, text=True, check=False, timeout=100)

    def compare(self, *arguments):
        """The same output file and counts on scalar and cuda. Returns the words of the file."""
        results = []
        for backend in ("scalar", "cuda"):
            out, stats = self.path("out"), self.path("stats")
            r = self.run_on(backend, *(a.replace("OUT", out) for a in arguments), "--stats", stats)
            self.assertEqual((r.returncode, r.stdout), (0, ""), r.stderr)
            root = json.loads(pathlib.Path(stats).read_text(encoding="ascii"))
            self.assertEqual(root["backend"], backend)
            image = pathlib.Path(out).read_bytes()
            results.append((image, root["guest_instructions"], root["classes"], root["kernels"]))
        self.assertEqual(results[0], results[1])
        return struct.unpack(f"{len(results[0][0]) // 4}I", results[0][0])

    def test_a_kernel_without_meetings(self):
        x = self.path("x")
        pathlib.Path(x).write_bytes(struct.pack("300f", *range(300)))
        out = self.compare(SAXPY, "--entry", "saxpy", "--grid", "3", "--block", "128", "--arg",
                           "300", "--arg", "2.5", "--arg", f"file:{x}", "--arg", f"file:{x}>OUT")
        self.assertEqual(out[2], struct.unpack("I", struct.pack("f", 7.0))[0])

    def test_several_devices(self):
        x, out, stats = self.path("x"), self.path("out"), self.path("stats")
        pathlib.Path(x).write_bytes(struct.pack("300f", *range(300)))
        found = []
        for options in (["--backend", "scalar"], ["--devices", "0,1"], ["--devices", "1"]):
            r = subprocess.run(
                [GPUSIM, "run", SAXPY, "--entry", "saxpy", "--grid", "3", "--block", "128", "--arg",
                 "300", "--arg", "2.5", "--arg", f"file:{x}", "--arg", f"file:{x}>{out}", "--stats",
                 stats, "--quiet", *options], capture_output=True, text=True, check=False,
                timeout=100, env={**os.environ, "GPUSIM_EMULATED_CHIP": "sm_90,sm_90"})
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            kernel = json.loads(pathlib.Path(stats).read_text(encoding="ascii"))["kernels"][0]
            self.assertEqual(kernel.pop("gpus", 0), 2 if options[-1] == "0,1" else 0)
            found.append((pathlib.Path(out).read_bytes(), kernel))
        self.assertEqual(found[0], found[1])
        self.assertEqual(found[0], found[2])

    def test_stacks(self):
        arguments = (STACKS, "--grid", "3", "--block", "40", "--arg", "buffer:480>OUT", "--arg")
        out = self.compare(*arguments, "17")

        def sum_of(n, seed):
            total = 0
            for i in reversed(range(n)):
                total = total * 3 + seed + i * i
            return total

        def deep(n, seed):
            below = deep(n - 1, seed * 5 & 0xffffffff) if n else 7
            for i in range(n + 1):
                below = below * 31 + (seed ^ i)
            return below & 0xffffffff

        for t, found in enumerate(out):
            total = sum(sum_of((t + i) % 17 + 1, t * i) for i in range(20)) & 0xffffffff
            self.assertEqual(found, total ^ deep(t % 5, t), f"thread {t}")
        for backend in ("scalar", "simd", "cuda"):
            r = self.run_on(backend, *(a.replace(">OUT", "") for a in arguments), "1000",
                            "--stack-size", "256")
            self.assertEqual(r.returncode, 139, r.stderr)
            self.assertRegex(r.stderr, r"overflows its stack: alloca of \d+ bytes, and 256 of 256")

    def test_barriers_and_shared_memory(self):
        n, image = 40, self.path("in")
        pathlib.Path(image).write_bytes(struct.pack(f"{n * n}I", *range(n * n)))
        out = self.compare(TRANSPOSE, "--grid", "3,3", "--block", "16,16", "--arg",
                           f"file:{image}", "--arg", str(n), "--arg", f"buffer:{4 * n * n}>OUT",
                           "--arg", str(n), "--arg", "bytes:" + struct.pack("II", n, n).hex())
        self.assertTrue(all(out[x * n + y] == y * n + x for x in range(n) for y in range(n)))

    def test_warps(self):
        n, words = 5 * 96, self.path("in")
        pathlib.Path(words).write_bytes(
            struct.pack(f"{n}I", *(i * 2654435761 % 2**32 >> 7 for i in range(n))))
        out = self.compare(WARPS, "--entry", "meet", "--grid", "5", "--block", "96", "--arg",
                           f"file:{words}", "--arg", f"buffer:{4 * n}>OUT", "--arg", "buffer:20")
        self.assertGreater(len(set(out)), n // 2)

    def test_faults(self):
        reports = {}
        for backend in ("scalar", "cuda"):
            r = self.run_on(backend, WARPS, "--entry", "stuck", "--block", "64")
            far = self.run_on(backend, SAXPY, "--entry", "saxpy", "--block", "32", "--arg", "32",
                              "--arg", "1.0", "--arg", "0", "--arg", "buffer:256")
            self.assertEqual((r.returncode, far.returncode), (139, 139), r.stderr + far.stderr)
            reports[backend] = (r.stderr, far.stderr)
        self.assertIn("waits for ever", reports["cuda"][0])
        self.assertEqual(reports["cuda"], reports["scalar"])

    def test_what_is_refused(self):
        for options in (["--check", "all"], ["--profile"]):
            r = self.run_on("cuda", WARPS, "--entry", "stuck", *options)
            self.assertEqual(r.returncode, 2, r.stderr)
            self.assertIn("are not for backend cuda; use simd or scalar", r.stderr)


if __name__ == "__main__":
    unittest.main()
