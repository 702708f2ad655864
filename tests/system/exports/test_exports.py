#!/usr/bin/env python3
"""What other programs read: callgrind's format, CSV, traces of Dinero, Ramulator and ChampSim.

  test_exports.py GPUSIM PLUGIN_FOLDER BUILD_FOLDER [UNITTEST ARGUMENT]...
"""

import csv
import json
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from gpusim_case import GpusimCase  # noqa: E402

GPUSIM, PLUGINS, BUILD = (pathlib.Path(a).resolve() for a in sys.argv[1:4])
CORES = 3


class Exports(GpusimCase):
    gpusim = GPUSIM
    timeout_s = 60

    @classmethod
    def setUpClass(cls):
        BUILD.mkdir(parents=True, exist_ok=True)
        cls.guest = BUILD / "exports.elf"
        subprocess.run(["/usr/bin/aarch64-linux-gnu-gcc", "-O2", "-g", "-march=armv8.1-a",
                        "-nostdlib", "-static", "-Wl,--entry=work", "-o", cls.guest,
                        HERE / "guest.c"], check=True)

    def run_gpusim(self, *options, status=0, cores=CORES):
        return super().run_gpusim("run", self.guest, "--entry", "work", "--arg", "@core",
                                  "--cores", cores, "--quiet", *options, status=status)

    def stats(self, *options, **keywords):
        path = self.folder / "stats.json"
        self.run_gpusim("--stats", path, *options, **keywords)
        return json.loads(path.read_text())

    def test_callgrind(self):
        annotate = shutil.which("callgrind_annotate")
        if annotate is None:
            self.skipTest("callgrind_annotate is missing (valgrind)")
        out = self.folder / "callgrind.out.gpusim"
        stats = self.stats(f"--profile={out}")
        done = subprocess.run([annotate, "--threshold=100", "--inclusive=no", "--auto=yes", out],
                              capture_output=True, text=True, check=True, timeout=60)
        self.assertEqual(done.stderr, "")
        text = done.stdout
        numbers = re.findall(r"^ *([\d,]+) .*PROGRAM TOTALS", text, re.M)
        self.assertEqual(int(numbers[0].replace(",", "")), stats["guest_instructions"])
        for part in stats["functions"]:
            found = re.search(rf"^ *([\d,]+) .*:{part['function']}(?: |$)", text, re.M)
            self.assertTrue(found, text)
            self.assertEqual(int(found[1].replace(",", "")), part["guest_instructions"])
        # The source text stands beside what its lines took.
        self.assertRegex(text, r"[\d,]+ .*sum \+= table\[i\]")

    def test_csv(self):
        path = self.folder / "stats.csv"
        options = ("--per-core", "--energy", "et-soc1,fermi", "--threads", 1)
        stats = self.stats(*options)
        self.run_gpusim("--stats", path, *options)
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        found = {(r["part"], r["name"], r["quantity"]): r["value"] for r in rows}
        self.assertEqual(len(found), len(rows))  # none twice

        def count(value):
            if isinstance(value, dict):
                return sum(map(count, value.values()))
            return sum(map(count, value)) if isinstance(value, list) else 1
        self.assertEqual(len(rows), count(stats))
        self.assertEqual(found["run", "", "isa"], "aarch64")
        self.assertEqual(int(found["run", "", "guest_instructions"]), stats["guest_instructions"])
        self.assertEqual(int(found["per_core", "2", "classes.control_flow"]),
                         stats["per_core"][2]["classes"]["control_flow"])
        for part in stats["functions"]:
            self.assertEqual(int(found["functions", part["function"], "guest_instructions"]),
                             part["guest_instructions"])
        self.assertEqual(float(found["energy", "fermi", "dynamic.value_J"]),
                         stats["energy"][1]["dynamic"]["value_J"])

    def accesses(self):
        """By the example plug-in: core, kind, address."""
        path = self.folder / "accesses"
        self.run_gpusim("--plugin", f"{PLUGINS}/memory_trace.so,{path}")
        return [(int(core), kind, int(address, 16)) for core, kind, address, _ in
                map(str.split, path.read_text().splitlines())]

    def test_dinero_and_ramulator(self):
        accesses = self.accesses()
        kinds = {kind for _, kind, _ in accesses}
        self.assertGreaterEqual(kinds, {"r", "w"})
        for core in (*range(CORES), None):
            of = "" if core is None else f",{core}"
            expected = [a for a in accesses if core in (None, a[0])]
            din, ramulator = self.folder / "t.din", self.folder / "t.ramulator"
            stats = self.stats("--trace", f"{din}{of}", "--per-core")
            counts = stats if core is None else stats["per_core"][core]
            lines = [line.split(" ") for line in din.read_text().splitlines()]
            self.assertEqual(sum(label == "2" for label, _ in lines),
                             counts["guest_instructions"])
            data = [(label, int(address, 16)) for label, address in lines if label != "2"]
            both = {"r": "0", "w": "1"}
            wanted = [(both[k], address) for _, kind, address in expected
                      for k in (kind if kind in both else "rw")]
            self.assertEqual(sorted(data), sorted(wanted))
            if core is not None:
                self.assertEqual(data, wanted)
            # A fetch comes before what its instruction accesses: the last one is a load or store.
            self.assertEqual(lines[0][0], "2")
            self.run_gpusim("--trace", f"{ramulator}{of}")
            theirs = [line.split(" ") for line in ramulator.read_text().splitlines()]
            self.assertEqual([("0" if k == "LD" else "1", int(a, 16)) for k, a in theirs], data)

    def test_champsim(self):
        path = self.folder / "t.champsim"
        stats = self.stats("--trace", f"{path},1", "--per-core")
        records = list(struct.iter_unpack("<Q2B2B4B2Q4Q", path.read_bytes()))
        self.assertEqual(len(records), stats["per_core"][1]["guest_instructions"])
        wanted = [(kind, address) for core, kind, address in self.accesses() if core == 1]
        found = []
        for ip, branch, taken, *rest in records:
            written, read = rest[6:8], rest[8:12]
            found += [("r", a) for a in read if a and a not in written]
            found += [("w", a) for a in written if a and a not in read]
            found += [("rw", a) for a in written if a and a in read]
        self.assertEqual([a for _, a in found], [a for _, a in wanted])
        # Who is not at the next instruction has branched, and who branches says so.
        for before, after in zip(records, records[1:]):
            self.assertEqual(before[0] + 4 != after[0], bool(before[2]), hex(before[0]))
            self.assertLessEqual(before[2], before[1])
            self.assertEqual(26 in before[3:5], bool(before[1]))  # ChampSim's instruction pointer
        self.assertTrue(any(r[1] and not r[2] for r in records))

    def test_compressed(self):
        """What gzip, xz and zstd unpack is what would have been written without them."""
        for ending, of, command in ((".gz", "", ["gzip", "-dc"]), (".xz", ",1", ["xz", "-dc"]),
                                    (".zst", "", ["zstd", "-dcq"])):
            for name in ("t.din", "t.champsim"):
                with self.subTest(name=name + ending):
                    core = of or (",0" if name == "t.champsim" else "")
                    plain, packed = self.folder / name, self.folder / (name + ending)
                    self.run_gpusim("--trace", f"{plain}{core}")
                    self.run_gpusim("--trace", f"{packed}{core}")
                    done = subprocess.run([*command, packed], capture_output=True, check=True,
                                          timeout=60)
                    self.assertEqual(done.stdout, plain.read_bytes())
                    self.assertLess(packed.stat().st_size, plain.stat().st_size / 3)

    def test_region(self):
        whole, part = self.folder / "whole.champsim", self.folder / "part.champsim"
        din, ramulator = self.folder / "part.din", self.folder / "part.ramulator"
        self.run_gpusim("--trace", f"{whole},1")
        every = whole.read_bytes()
        count = len(every) // 64
        for first, end in ((0, 10), (7, count - 5), (count - 3, count + 100)):
            text = f"{first}..{end}"
            self.run_gpusim("--trace", f"{part},1", "--trace-region", text)
            self.assertEqual(part.read_bytes(), every[64 * first:64 * end], text)
        self.run_gpusim("--trace", f"{part},1", "--trace-region", "100..")
        self.assertEqual(part.read_bytes(), every[6400:])
        # The other formats have the same instructions, and their accesses.
        self.run_gpusim("--trace", f"{whole},1", "--trace-region", "50..150")
        records = list(struct.iter_unpack("<Q2B2B4B2Q4Q", whole.read_bytes()))
        self.run_gpusim("--trace", f"{din},1", "--trace-region", "50..150")
        self.run_gpusim("--trace", f"{ramulator},1", "--trace-region", "50..150")
        lines = [line.split() for line in din.read_text().splitlines()]
        self.assertEqual([int(a, 16) for label, a in lines if label == "2"],
                         [r[0] for r in records])
        accesses = [a for _, *rest in records for a in rest[8:14] if a]
        self.assertEqual([int(a, 16) for label, a in lines if label != "2"], accesses)
        self.assertEqual([int(line.split()[1], 16) for line in ramulator.read_text().splitlines()],
                         accesses)

    def test_region_of_a_function(self):
        """As many instructions as the profile counts in it, from its first to its last."""
        stats = self.stats("--per-core")
        wanted = {f["function"]: f["guest_instructions"] for f in stats["functions"]}
        path = self.folder / "f.din"
        self.run_gpusim("--trace", path, "--trace-region", "add_up")
        fetches = [int(line[2:], 16) for line in path.read_text().splitlines()
                   if line.startswith("2 ")]
        self.assertEqual(len(fetches), wanted["add_up"])
        self.assertLess(len(fetches), stats["guest_instructions"])
        self.run_gpusim("--trace", path, "--trace-region", "work")
        self.assertEqual(path.read_text().count("\n2 ") + 1, stats["guest_instructions"])

    def test_what_is_wrong_is_said(self):
        for value, says in (("t.txt", "should end in .din"), ("t.din,3", "a core from 0 to 2"),
                            ("t.din,x", "a core from 0 to 2"),
                            ("t.champsim", "a trace of one core"),
                            ("t.gz", "should end in .din"), ("t.din.gz.gz", "should end in .din"),
                            ("/none/t.din", "/none/t.din: No such file")):
            done = self.run_gpusim("--trace", value, status=2)
            self.assertRegex(done.stderr, r"\Agpusim: error: --trace [^\n]+\n\Z")
            self.assertIn(says, done.stderr)
        for region, says in (("5..2", "ends before it begins"), ("1..x", "no number"),
                             ("nowhere", "no function of that name")):
            done = self.run_gpusim("--trace", "t.din", "--trace-region", region, status=2)
            self.assertRegex(done.stderr, r"\Agpusim: error: --trace-region [^\n]+\n\Z")
            self.assertIn(says, done.stderr)
        done = self.run_gpusim("--trace-region", "1..2", status=2)
        self.assertIn("--trace-region needs --trace FILE", done.stderr)
        self.run_gpusim("--trace", self.folder / "one.champsim", cores=1)
        self.assertEqual([p.name for p in self.folder.iterdir()], ["one.champsim"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
