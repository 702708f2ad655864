#!/usr/bin/env python3
"""`gpusim run --caches`, against valgrind's cachegrind and against itself (docs/caches.md).

  test_caches.py GPUSIM PLUGIN_FOLDER BUILD_FOLDER [UNITTEST ARGUMENT]...

GPUSIM_TEST_ISA says for which guest ISA.

Cachegrind sees the same stream of addresses: the plug-in memory_trace writes it, and a program that
does nothing else but these accesses is made of it.
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
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE.parents[1] / "differential" / "qemu"))
import harness  # noqa: E402
from gpusim_case import GpusimCase  # noqa: E402

ISA = os.environ.get("GPUSIM_TEST_ISA", "aarch64")
CROSS = f"/usr/bin/{ISA}-linux-gnu-gcc"
BARE = ["-static", "-nostdlib", "-ffreestanding", "-fno-pie", "-no-pie", "-fno-stack-protector"]
SIZES = {"aarch64": {1, 2, 4, 8, 16}, "riscv64": {1, 2, 4, 8}}[ISA]
REGION_BITS = 20  # no cache under test has a way of more bytes


class Lru:
    """The reference for what a write-back cache asks of the next level."""

    def __init__(self, size, ways, line):
        self.line, self.sets, self.ways = line, [[] for _ in range(size // ways // line)], ways

    def request(self, kind, line):
        """Yields what the next level has to do, as (kind, line)."""
        lines = self.sets[line % len(self.sets)]
        for entry in lines:
            if entry[0] == line:
                lines.remove(entry)
                lines.insert(0, (line, entry[1] or kind == "w"))
                return
        yield "r", line
        if len(lines) == self.ways:
            victim, dirty = lines.pop()
            if dirty:
                yield "w", victim
        lines.insert(0, (line, kind == "w"))

    def next_level(self, stream):
        for kind, address, size in stream:
            for line in range(address // self.line, (address + size - 1) // self.line + 1):
                for wanted, at in self.request(kind, line):
                    yield wanted, at * self.line, 1


def shape(path, *levels, line=64):
    path.write_text(json.dumps({"line_bytes": line, "levels": list(levels)}))
    return path


class Caches(GpusimCase):
    command = ("run",)
    plugins: pathlib.Path
    build: pathlib.Path

    @classmethod
    def setUpClass(cls):
        cls.build.mkdir(parents=True, exist_ok=True)
        harness.build_all({"caches.elf": [CROSS, "-O1", "-g", *BARE, "-Wl,--entry=work",
                                          HERE / "guests.c"]},
                          harness.compiler_version(CROSS), cls.build, os.cpu_count())
        cls.guest = cls.build / "caches.elf"

    def work(self, *options, cores=1, rounds=2):
        stats = self.folder / "stats.json"
        self.run_gpusim(self.guest, "--entry", "work", "--arg", "@core", "--arg", rounds, "--cores",
                        cores, "--quiet", "--stats", stats, *options)
        return json.loads(stats.read_text())

    # ---- An independent simulator

    def trace(self):
        path = self.folder / "trace.txt"
        self.run_gpusim(self.guest, "--entry", "work", "--arg", 3, "--arg", 2, "--quiet",
                        "--plugin",
                        f"{self.plugins}/memory_trace.so,{path}")
        stream = []
        for text in path.read_text().splitlines():
            core, kind, address, size = text.split()
            self.assertEqual(core, "0")
            stream.append((kind, int(address, 16), int(size)))
        return stream

    def cachegrind(self, stream, size, ways, line):
        """Read and write misses of a data cache on the stream, and the accesses that it saw."""
        regions = {}
        # Valgrind leaves out loads of what nobody uses.
        forms = {("r", 1): "xorb {}, %al", ("r", 2): "xorw {}, %ax", ("r", 4): "xorl {}, %eax",
                 ("r", 8): "xorq {}, %rax", ("r", 16): "vpxor {}, %xmm0, %xmm0",
                 ("w", 1): "movb %al, {}", ("w", 2): "movw %ax, {}", ("w", 4): "movl %eax, {}",
                 ("w", 8): "movq %rax, {}", ("w", 16): "movdqu %xmm0, {}"}
        base = 0x20000000
        lines = []
        for kind, address, bytes_ in stream:
            region = regions.setdefault(address >> REGION_BITS, len(regions))
            at = base + (region << (REGION_BITS + 1)) + (address & ((1 << REGION_BITS) - 1))
            lines.append(forms[kind, bytes_].format(hex(at)))
        self.assertLess(len(regions), 64)
        # mmap(base, all regions, read and write, fixed | private | anonymous), the accesses, exit.
        source = [".globl _start", "_start:", "movl $9, %eax", f"movl ${base:#x}, %edi",
                  f"movl ${(len(regions) + 1) << (REGION_BITS + 1):#x}, %esi", "movl $3, %edx",
                  "movl $0x32, %r10d", "movl $-1, %r8d", "xorl %r9d, %r9d", "syscall", *lines,
                  "movq %rax, %rbx",  # also the last loads are used
                  "movl $60, %eax", "xorl %edi, %edi", "syscall"]
        (self.folder / "replay.s").write_text("\n".join(source) + "\n")
        subprocess.run(["gcc", "-nostdlib", "-static", "-no-pie", "-o", self.folder / "replay",
                        self.folder / "replay.s"], check=True, capture_output=True)
        out = self.folder / "cachegrind.out"
        done = subprocess.run(
            ["valgrind", "--tool=cachegrind", "--cache-sim=yes", f"--D1={size},{ways},{line}",
             f"--cachegrind-out-file={out}", self.folder / "replay"],
            capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = out.read_text()
        names = re.search(r"^events: (.*)$", text, re.M).group(1).split()
        sums = re.search(r"^summary:? (.*)$", text, re.M).group(1).split()
        counts = dict(zip(names, map(int, sums)))
        return {"reads": counts["Dr"], "read_misses": counts["D1mr"], "writes": counts["Dw"],
                "write_misses": counts["D1mw"]}

    @unittest.skipUnless(shutil.which("valgrind"),
                         "valgrind is not installed (apt-get install valgrind)")
    def test_misses_are_those_of_cachegrind(self):
        stream = self.trace()
        self.assertGreater(len(stream), 5000)
        self.assertEqual({size for _, _, size in stream}, SIZES)
        for size, ways, line in ((4096, 2, 64), (32768, 4, 64), (16384, 1, 32), (65536, 16, 128)):
            with self.subTest(size=size, ways=ways, line=line):
                stats = self.run_one(shape(self.folder / "c.json",
                                           {"name": "L1", "size": size, "ways": ways}, line=line))
                level = stats["caches"]["levels"][0]
                expected = self.cachegrind(stream, size, ways, line)
                self.assertEqual({key: level[key] for key in expected}, expected)

    @unittest.skipUnless(shutil.which("valgrind"),
                         "valgrind is not installed (apt-get install valgrind)")
    def test_misses_of_the_second_level_are_those_of_cachegrind(self):
        first = Lru(4096, 2, 64)
        requests = list(first.next_level(self.trace()))
        stats = self.run_one(shape(self.folder / "c.json", {"name": "L1", "size": 4096, "ways": 2},
                                   {"name": "L2", "size": 65536, "ways": 8, "cores": "all"}))
        level = stats["caches"]["levels"][1]
        expected = self.cachegrind(requests, 65536, 8, 64)
        self.assertEqual({key: level[key] for key in expected}, expected)
        self.assertEqual(stats["caches"]["memory"]["line_reads"],
                         level["read_misses"] + level["write_misses"])

    def run_one(self, path):
        stats = self.folder / "stats.json"
        self.run_gpusim(self.guest, "--entry", "work", "--arg", 3, "--arg", 2, "--quiet",
                        "--caches",
                        path, "--stats", stats)
        return json.loads(stats.read_text())

    # ---- The same on all machines

    def test_counts_do_not_depend_on_the_machine(self):
        caches = shape(self.folder / "c.json", {"name": "L1", "size": "2K", "ways": 2},
                       {"name": "L2", "size": "8K", "ways": 4, "cores": 4,
                        "replacement": "tree-plru"},
                       {"name": "L3", "size": "64K", "ways": 8, "cores": "all"})
        runs = [("--backend", "scalar"), ("--backend", "simd", "--threads", 1),
                ("--backend", "simd", "--threads", 2), ("--backend", "simd", "--no-native"),
                ("--backend", "simd", "--group-width", 8), ("--backend", "simd", "--slice", 100),
                ("--backend", "simd", "--seed", 7), ("--backend", "scalar", "--slice", 77)]
        seen = []
        for options in runs:
            stats = self.work("--caches", caches, "--per-core", *options, cores=100)
            seen.append({key: stats[key] for key in ("caches", "classes", "functions", "lines",
                                                     "per_core", "guest_instructions")})
        for options, one in zip(runs[1:], seen[1:]):
            self.assertEqual(one, seen[0], options)
        levels = seen[0]["caches"]["levels"]
        self.assertTrue(all(0 < level["read_misses"] < level["reads"] for level in levels), levels)

    def test_memory_instructions_are_told_apart(self):
        plain = self.work(cores=8)
        caches = shape(self.folder / "c.json", {"name": "L1", "size": "4K", "ways": 2},
                       {"name": "L2", "size": "64K", "ways": 8, "cores": "all"})
        stats = self.work("--caches", caches, "--per-core", cores=8)
        self.assertNotIn("caches", plain)
        self.assertEqual(plain["classes"]["on_chip_memory"], 0)
        on, off = (stats["classes"][f"{where}_chip_memory"] for where in ("on", "off"))
        self.assertEqual(on + off, plain["classes"]["off_chip_memory"])
        # An instruction may miss two lines.
        last = stats["caches"]["levels"][1]
        misses = last["read_misses"] + last["write_misses"]
        self.assertTrue(misses / 2 <= off <= misses, (off, misses))
        for key in ("functions", "lines", "per_core"):
            for which, total in (("on_chip_memory", on), ("off_chip_memory", off)):
                self.assertEqual(sum(part["classes"].get(which, 0) for part in stats[key]), total,
                                 key)
        for name in plain["classes"]:
            if not name.endswith("chip_memory"):
                self.assertEqual(plain["classes"][name], stats["classes"][name])

    def test_programs_with_a_c_library_and_modules(self):
        source = self.folder / "p.c"
        source.write_text("#include <pthread.h>\n#include <stdio.h>\nstatic int x[4096];\n"
                          "static void* f(void* p) { for (int i = 0; i < 4096; ++i) x[i] += "
                          "(long)p;"
                          " return 0; }\n"
                          "int main() { pthread_t t; pthread_create(&t, 0, f, (void*)2); "
                          "f((void*)0);"
                          " pthread_join(t, 0); printf(\"%d\\n\", x[7]); }\n")
        elf = self.folder / "p.elf"
        subprocess.run([CROSS, "-O1", "-static", "-o", elf, source], check=True)
        caches = shape(self.folder / "c.json", {"name": "L1", "size": "8K", "ways": 2},
                       {"name": "L2", "size": "64K", "ways": 8, "cores": "all"})
        done = self.run_gpusim(elf, "--cores", 2, "--caches", caches, "--quiet")
        self.assertEqual(done.stdout, "2\n")
        self.assertRegex(done.stderr, r"L2 64 KiB of all cores +\d+ +\d+ +[\d.]+% +\d+")
        module = self.folder / "caches.gsm"
        subprocess.run([self.gpusim, "translate", self.guest, "-o", module], check=True,
                       capture_output=True)
        from_elf = self.run_one(caches)
        self.guest = module
        from_module = self.run_one(caches)
        self.assertEqual(from_module["caches"], from_elf["caches"])

    def test_faults_and_limits(self):
        caches = shape(self.folder / "c.json", {"name": "L1", "size": "4K", "ways": 2})
        stats = self.folder / "stats.json"
        self.run_gpusim(self.guest, "--entry", "work", "--arg", "@core", "--arg", 1000, "--cores",
                        3,
                        "--caches", caches, "--max-instructions", 5000, "--quiet", "--stats", stats,
                        status=124)
        self.assertGreater(json.loads(stats.read_text())["caches"]["levels"][0]["reads"], 1000)

    def test_bad_descriptions(self):
        bad = self.folder / "bad.json"
        bad.write_text("{}")
        for path, says in ((bad, '"levels" is missing'), (self.folder / "none.json", "none.json")):
            done = self.run_gpusim(self.guest, "--caches", path, status=2)
            self.assertRegex(done.stderr, r"\Agpusim: error: [^\n]+\n\Z")
            self.assertIn(says, done.stderr)


if __name__ == "__main__":
    Caches.gpusim = pathlib.Path(sys.argv[1]).resolve()
    Caches.plugins = pathlib.Path(sys.argv[2]).resolve()
    Caches.build = pathlib.Path(sys.argv[3]).resolve()
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
