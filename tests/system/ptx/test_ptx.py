#!/usr/bin/env python3
"""gpusim run KERNELS.ptx: arguments, results, statistics, messages.

  test_ptx.py GPUSIM [UNITTEST ARGUMENT]...
"""

import itertools
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

GPUSIM = sys.argv.pop(1)
SAXPY = str(pathlib.Path(__file__).with_name("saxpy.ptx"))
VOLATILE = str(pathlib.Path(__file__).with_name("volatile.ptx"))


def run(*arguments):
    return subprocess.run([GPUSIM, "run", *arguments], capture_output=True, text=True, check=False,
                          timeout=100)


def transpose_counts(n):
    """Per opcode of memory: threads, warps, and sectors or conflicts of n x n words."""
    tiles, counts = (n + 15) // 16, {}

    def add(opcode, words):
        if not words:
            return
        if ".global" in opcode:
            extra = len({w // 8 for w in words})
        else:
            banks = {}
            for w in set(words):
                banks[w % 32] = banks.get(w % 32, 0) + 1
            extra = max(banks.values()) - 1
        threads, warps, sum_of = counts.get(opcode, (0, 0, 0))
        counts[opcode] = (threads + len(words), warps + 1, sum_of + extra)

    for by, bx, warp in itertools.product(range(tiles), range(tiles), range(8)):
        lanes = [(t % 16, t // 16) for t in range(32 * warp, 32 * warp + 32)]
        into = [(x, y) for x, y in lanes if bx * 16 + x < n and by * 16 + y < n]
        out = [(x, y) for x, y in lanes if by * 16 + x < n and bx * 16 + y < n]
        add("ld.global.u32", [(by * 16 + y) * n + bx * 16 + x for x, y in into])
        add("st.shared.u32", [17 * y + x for x, y in into])
        add("ld.shared.u32", [17 * x + y for x, y in out])
        add("st.global.u32", [(bx * 16 + y) * n + by * 16 + x for x, y in out])
    return counts


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

    def test_volatile_accesses_are_made_in_step(self):
        rounds, threads = 300, 8 * 64
        words = [17 * i % 1001 for i in range(threads)]
        pathlib.Path(self.path("words")).write_bytes(struct.pack(f"{threads}I", *words))
        expected = []
        for warp in range(0, threads, 32):
            one = sum(words[warp:warp + 32])
            expected += 32 * [sum(one + 32 * r for r in range(rounds))]
        for backend in ("scalar", "simd"):
            r = run(VOLATILE, "--entry", "warp_sums", "--grid", "8", "--block", "64",
                    "--backend", backend, "--arg", "file:" + self.path("words"),
                    "--arg", f"buffer:{4 * threads}>{self.path('sums')}", "--arg", str(rounds))
            self.assertEqual(r.returncode, 0, r.stderr)
            sums = struct.unpack(f"{threads}I", pathlib.Path(self.path("sums")).read_bytes())
            self.assertEqual(list(sums), expected, backend)

    def test_the_transpose_of_the_thesis(self):
        """Section 6.1.3: 526,338 accesses off the chip, 278,784 barriers."""
        n = 513
        image = struct.pack(f"{n * n}I", *range(n * n))
        pathlib.Path(self.path("in")).write_bytes(image)
        pathlib.Path(self.path("out")).write_bytes(bytes(len(image)))
        r = run(str(pathlib.Path(__file__).with_name("transpose.ptx")), "--grid", "33,33",
                "--block", "16,16", "--arg", "file:" + self.path("in"), "--arg", str(n),
                "--arg", f"file:{self.path('out')}>{self.path('out')}", "--arg", str(n),
                "--arg", "bytes:" + struct.pack("II", n, n).hex(), "--stats", self.path("stats"))
        self.assertEqual(r.returncode, 0, r.stderr)
        out = struct.unpack(f"{n * n}I", pathlib.Path(self.path("out")).read_bytes())
        self.assertTrue(all(out[x * n + y] == y * n + x for x in range(n) for y in range(n)))

        def trace(*options):
            r = subprocess.run([GPUSIM, "energy", "trace", self.path("stats"), *options],
                               capture_output=True, text=True, check=True, timeout=100)
            return {k: int(v) for k, v in (line.split(": ") for line in r.stdout.splitlines()
                                           if line and not line.startswith("Kernel"))}
        stats = json.loads(pathlib.Path(self.path("stats")).read_text(encoding="ascii"))
        opcodes = stats["kernels"][0]["opcodes"]
        ours, thesis = trace(), trace("--classes", "thesis")
        for counts in (ours, thesis):
            self.assertEqual(counts["Memory_offchip"], 526338)
            self.assertEqual(counts["Parallelism"], 278784)
            self.assertEqual(sum(counts.values()), stats["guest_instructions"])
        # Moves are what the schemes disagree on here.
        moves = sum(n for o, n in opcodes.items() if o.startswith("mov"))
        self.assertGreater(moves, 0)
        self.assertEqual(thesis["Integer_arithmetic"], ours["Integer_arithmetic"] + moves)
        self.assertEqual(thesis["Integer_logical"], ours["Integer_logical"] - moves)
        # The classes that are made of spellings are those that were tallied.
        names = {"Integer_arithmetic": "integer_arithmetic", "Integer_logical": "integer_logical",
                 "Integer_comparison": "integer_comparison", "Memory_onchip": "on_chip_memory",
                 "Control": "control_flow", "Other": "other"}
        for name, key in names.items():
            self.assertEqual(ours[name], stats["classes"][key], name)

    def test_profile(self):
        """Sectors and bank conflicts of the transpose, against a count of its own."""
        n, text = 513, pathlib.Path(__file__).with_name("transpose.ptx")
        size = 4 * n * n
        for backend in ("scalar", "simd"):
            r = run(str(text), "--grid", "33,33", "--block", "16,16", "--arg", f"buffer:{size}",
                    "--arg", str(n), "--arg", f"buffer:{size}", "--arg", str(n), "--arg",
                    "bytes:" + struct.pack("II", n, n).hex(), "--backend", backend,
                    f"--profile={self.path('profile')}", "--stats", self.path("stats"))
            self.assertEqual(r.returncode, 0, r.stderr)
            profile = json.loads(pathlib.Path(self.path("profile")).read_text(encoding="utf-8"))
            stats = json.loads(pathlib.Path(self.path("stats")).read_text(encoding="utf-8"))
            self.assertEqual(stats["kernels"][0]["profile"], profile)
            self.assertEqual(profile["instructions"], stats["guest_instructions"])
            expected = transpose_counts(n)
            lines = {row["line"].rsplit(":", 1)[1]: row for row in profile["lines"]}
            for number, line in enumerate(text.read_text(encoding="ascii").splitlines(), 1):
                opcode = line.split()[0] if line.split() else ""
                if opcode not in expected:
                    continue
                want, row = expected[opcode], lines[str(number)]
                self.assertEqual((row["instructions"], row["warp_instructions"]), want[:2], opcode)
                is_global = ".global" in opcode
                got = ((row["global_accesses"], row["sectors"]) if is_global
                       else (row["shared_accesses"], row["bank_conflicts"]))
                self.assertEqual(got, (want[1], want[2]), opcode)
        r = run(str(text), "--grid", "1", "--block", "16,16", "--arg", "buffer:4096", "--arg",
                "16", "--arg", "buffer:4096", "--arg", "16", "--arg",
                "bytes:" + struct.pack("II", 16, 16).hex(), "--profile")
        self.assertIn("lanes   sectors conflicts", r.stderr)
        r = run(str(text), "--profile", "--check", "all")
        self.assertEqual(r.returncode, 2)
        self.assertIn("run twice", r.stderr)

    def test_caches(self):
        """64 x 64 words: each line of 32 bytes is accessed once, each of 128 by two blocks."""
        n, text = 64, str(pathlib.Path(__file__).with_name("transpose.ptx"))
        size, caches = 4 * n * n, self.path("caches.json")

        def transpose(*options):
            return run(text, "--grid", "4,4", "--block", "16,16", "--arg", f"buffer:{size}",
                       "--arg", str(n), "--arg", f"buffer:{size}", "--arg", str(n), "--arg",
                       "bytes:" + struct.pack("II", n, n).hex(), *options)
        for line_bytes, requests, missed in ((32, 512, 512), (128, 256, 128)):
            description = {"line_bytes": line_bytes, "multiprocessors": 1, "levels": [
                {"name": "L1", "size": "1M", "ways": 8, "cores": 512},
                {"name": "L2", "size": "4M", "ways": 8, "cores": "all"}]}
            pathlib.Path(caches).write_text(json.dumps(description), encoding="ascii")
            for backend in ("scalar", "simd"):
                r = transpose("--backend", backend, "--caches", caches, "--stats",
                              self.path("stats"))
                self.assertEqual(r.returncode, 0, r.stderr)
                kernel = json.loads(pathlib.Path(self.path("stats")).read_text(
                    encoding="ascii"))["kernels"][0]
                found = kernel["profile"]["caches"]
                first, second = found["levels"]
                self.assertEqual([first[key] for key in ("reads", "read_misses", "writes",
                                                         "write_misses")],
                                 [requests, missed, requests, missed])
                # A line that is written is fetched first.
                self.assertEqual((second["reads"], second["writes"]), (2 * missed, 0))
                self.assertEqual((found["memory_reads"], found["memory_writes"]), (2 * missed, 0))
                # The first block to touch a line has 16 threads there, or 8.
                off_chip = 2 * missed * min(16, line_bytes // 4)
                self.assertEqual((found["accesses"], found["off_chip_accesses"]),
                                 (2 * n * n, off_chip))
                trace = subprocess.run([GPUSIM, "energy", "trace", self.path("stats")],
                                       capture_output=True, text=True, check=True, timeout=100)
                self.assertIn(f"Memory_offchip: {off_chip}\n", trace.stdout)
        r = transpose("--caches", caches)
        self.assertEqual(r.returncode, 2)
        self.assertIn("needs --profile or --stats", r.stderr)
        del description["multiprocessors"]
        pathlib.Path(caches).write_text(json.dumps(description), encoding="ascii")
        r = transpose("--caches", caches, "--profile")
        self.assertEqual(r.returncode, 2)
        self.assertIn('"multiprocessors" is missing', r.stderr)

    def test_rows_of_a_target(self):
        """ptx-volta prices fma.rn.f32 by its row fp32_mul, 0.0014 uJ, and not by its class."""
        r = run(SAXPY, "--entry", "saxpy", "--grid", "4", "--block", "256", "--arg", "1000",
                "--arg", "2.5", "--arg", "buffer:4000", "--arg", "buffer:4000", "--stats",
                self.path("stats"))
        self.assertEqual(r.returncode, 0, r.stderr)
        subprocess.run([GPUSIM, "energy", "estimate", self.path("stats"), "--target", "ptx-volta",
                        "--json", self.path("json")], capture_output=True, check=True, timeout=100)
        estimate = json.loads(pathlib.Path(self.path("json")).read_text(encoding="utf-8"))
        rows = {r["row"]: r for r in estimate["targets"][0]["rows"]}
        target = json.loads((pathlib.Path(__file__).parents[3] / "energy" / "targets" /
                             "ptx-volta.json").read_text(encoding="utf-8"))
        each = target["measurements"]["fp32_mul"]["values"]["mtsm-o3"] * 1e-6
        self.assertEqual(rows["fp32_mul"]["guest_instructions"], 1000)
        self.assertAlmostEqual(rows["fp32_mul"]["energy"]["value_J"], 1000 * each)
        total = sum(r["energy"]["value_J"] for r in rows.values())
        self.assertAlmostEqual(estimate["targets"][0]["dynamic"]["value_J"], total)
        self.assertEqual(sum(r["guest_instructions"] for r in rows.values()),
                         json.loads(pathlib.Path(self.path("stats")).read_text(encoding="ascii"))
                         ["guest_instructions"])

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
            (["--entry", "textured"], "use texture and surface objects"),
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
