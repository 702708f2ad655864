#!/usr/bin/env python3
"""`gpusim energy` and `gpusim run --energy` (docs/energy.md).

  test_energy.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...
GPUSIM_UPDATE_GOLDEN=1 writes golden/*.txt anew.
"""

import json
import math
import os
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
GOLDEN = HERE / "golden"
sys.path.insert(0, str(HERE.parent))
sys.path.insert(0, str(HERE.parents[1] / "differential" / "qemu"))
import harness  # noqa: E402
from gpusim_case import GpusimCase  # noqa: E402

CROSS = "/usr/bin/aarch64-linux-gnu-gcc"
CROSS_RISCV = "/usr/bin/riscv64-linux-gnu-gcc"
BARE = ["-static", "-nostdlib", "-ffreestanding", "-fno-pie", "-no-pie", "-fno-stack-protector"]
PTX = [f"ptx-{gpu}/{variant}" for gpu in ("maxwell", "pascal", "turing", "volta")
       for variant in ("mtsm-o3", "papi-o3", "mtsm-o0", "papi-o0")]


class Energy(GpusimCase):
    build: pathlib.Path

    @classmethod
    def setUpClass(cls):
        cls.build.mkdir(parents=True, exist_ok=True)
        harness.build_all({name: [compiler, "-O1", "-g", *BARE, "-Wl,--entry=work",
                                  HERE / "guests.c"]
                           for name, compiler in (("energy.elf", CROSS),
                                                  ("energy-riscv64.elf", CROSS_RISCV))},
                          harness.compiler_version(CROSS), cls.build, os.cpu_count())
        cls.guest = cls.build / "energy.elf"
        cls.riscv_guest = cls.build / "energy-riscv64.elf"

    def setUp(self):
        super().setUp()
        self.stats_path = self.folder / "stats.json"

    def refused(self, *words):
        done = self.run_gpusim(*words, status=2)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"\Agpusim: error: [^\n]+\n\Z")
        return done.stderr

    def work(self, *options, cores=8, status=139, guest=None):
        return self.run_gpusim("run", guest or self.guest, "--entry", "work", "--arg", "@core",
                               "--cores",
                               cores, "--quiet", *options, status=status)

    def stats(self):
        return json.loads(self.stats_path.read_text())

    # Where instructions are executed

    def check_parts(self, stats, key):
        sums = dict.fromkeys(stats["classes"], 0)
        for part in stats[key]:
            self.assertEqual(part["guest_instructions"], sum(part["classes"].values()))
            for name, count in part["classes"].items():
                sums[name] += count
        self.assertEqual(sums, stats["classes"], key)

    def test_functions_and_lines_add_up_to_the_run(self):
        seen = {}
        for backend in ("scalar", "simd"):
            for memory in ("shared", "private"):
                self.work("--backend", backend, "--memory", memory, "--stats", self.stats_path)
                stats = self.stats()
                self.check_parts(stats, "functions")
                self.check_parts(stats, "lines")
                parts = {key: stats[key] for key in ("functions", "lines")}
                self.assertEqual(seen.setdefault("parts", parts), parts)
        functions = {f["function"]: f for f in stats["functions"]}
        self.assertEqual(set(functions), {"adds", "divides", "work"})
        self.assertEqual(functions["divides"]["classes"]["integer_division"], 7 * 10)
        loops = 1000 + 6 * 100
        self.assertGreaterEqual(functions["adds"]["classes"]["integer_arithmetic"], 3 * loops)
        source = (HERE / "guests.c").read_text().splitlines()
        lines = {line["line"]: line["classes"] for line in stats["lines"]}

        def line_with(text):
            place = 1 + next(i for i, line in enumerate(source) if text in line)
            return lines[f"guests.c:{place}"]

        self.assertEqual(line_with("volatile(DIVIDE)")["integer_division"], 7 * 10)
        # Three cores of eight (3, 5, 7) fault at the load, which counts; what follows does not.
        self.assertEqual(line_with("FAULT ADD)")["off_chip_memory"], 3)
        self.assertEqual(line_with("FAULT ADD)")["integer_arithmetic"], 3 * 2)

    def test_a_limit_in_the_middle_adds_up_too(self):
        self.work("--max-instructions", 77, "--stats", self.stats_path, status=124)
        stats = self.stats()
        self.check_parts(stats, "functions")
        self.check_parts(stats, "lines")

    def test_programs_without_lines_have_none(self):
        stripped = self.folder / "stripped.elf"
        subprocess.run(["/usr/bin/aarch64-linux-gnu-strip", "--strip-debug", self.guest, "-o",
                        stripped], check=True)
        self.run_gpusim("run", stripped, "--entry", "adds", "--arg", 5, "--stats", self.stats_path)
        self.assertEqual(self.stats()["lines"], [])
        self.check_parts(self.stats(), "functions")

    # Estimates

    def estimate(self, *options, target="all"):
        out = self.folder / "energy.json"
        done = self.run_gpusim("energy", "estimate", self.stats_path, "--target", target, "--json",
                               out, *options)
        return json.loads(out.read_text()), done.stdout

    def test_one_run_on_all_targets(self):
        self.work("--per-core", "--stats", self.stats_path)
        stats = self.stats()
        result, text = self.estimate()
        self.assertEqual(result["guest_instructions"], stats["guest_instructions"])
        self.assertEqual(result["cores"], 8)
        names = [t["target"] for t in result["targets"]]
        self.assertEqual(sorted(names), sorted(["cortex-a7", "et-soc1", "fermi", *PTX]))
        for t in result["targets"]:
            self.assertIn(t["target"], text)
            total = t["dynamic"]["value_J"]
            self.assertLessEqual(t["dynamic"]["low_J"], total)
            self.assertGreaterEqual(t["dynamic"]["high_J"], total)
            for key in ("functions", "lines", "per_core"):
                self.assertTrue(math.isclose(
                    sum(p["energy"]["value_J"] for p in t[key]), total, rel_tol=1e-12), key)
            by_class = 0
            for name, one in t["classes"].items():
                self.assertEqual(one["count"], stats["classes"][name])
                self.assertEqual(one["is_substitute"], "reason" in one)
                by_class += one["count"] * one["each"]["value_J"]
            self.assertTrue(math.isclose(by_class, total, rel_tol=1e-12))
            self.assertEqual((t["active_cores"], t["idle_cores"]), (8, 0))
            cores = [c["energy"]["value_J"] for c in t["per_core"]]
            self.assertEqual(cores.index(max(cores)), 1)
            self.assertEqual(cores.index(min(cores)), 2)
        fermi = result["targets"][names.index("fermi")]
        nj = {"integer_arithmetic": 0.11, "integer_division": 2.08, "integer_logical": 0.62,
              "integer_comparison": 0.62, "off_chip_memory": 17.95, "control_flow": 0.62}
        by_hand = sum(count * nj[name] for name, count in stats["classes"].items() if count)
        self.assertTrue(math.isclose(fermi["dynamic"]["value_J"], by_hand * 1e-9, rel_tol=1e-9))
        self.assertTrue(fermi["time_is_assumed"])

    def test_a_riscv_chip_takes_riscv_instructions_as_its_own(self):
        self.work("--stats", self.stats_path, guest=self.riscv_guest)
        self.check_parts(self.stats(), "functions")
        self.check_parts(self.stats(), "lines")
        functions = {f["function"]: f["classes"] for f in self.stats()["functions"]}
        self.assertEqual(functions["divides"]["integer_division"], 7 * 10)
        result, _ = self.estimate(target="et-soc1")
        energies = {f["function"]: f["energy"]["value_J"]
                    for f in result["targets"][0]["functions"]}
        # By hand, in pJ (energy/targets/et-soc1.json): the loops have additions and a branch each.
        pj = {"integer_arithmetic": (9.2 + 10.2) / 2, "integer_division": 146.5,
              "integer_logical": (9.2 + 9.1) / 2, "control_flow": 12.0}
        for name in ("adds", "divides"):
            by_hand = sum(count * pj[c] for c, count in functions[name].items() if count)
            self.assertTrue(math.isclose(energies[name], by_hand * 1e-12, rel_tol=1e-9), name)

    def test_run_prints_energy_and_writes_it(self):
        done = self.work("--energy", "fermi,ptx-volta,et-soc1", "--per-core", "--stats",
                         self.stats_path)
        for word in ("fermi", "ptx-volta/mtsm-o3", "et-soc1", "divides", "guests.c:",
                     "8 active, 0 idle",
                     "integer_division"):
            self.assertIn(word, done.stderr)
        self.assertEqual(done.stdout, "")
        stats = self.stats()
        later, _ = self.estimate(target="fermi,ptx-volta,et-soc1")
        self.assertEqual(stats["energy"], later["targets"])
        alone = self.work("--energy", "fermi")
        self.assertIn("integer_division", alone.stderr)
        self.assertNotIn("cores:", alone.stderr)
        self.work("--energy", "fermi", "--per-core")

    def test_the_longest_core_counts_with_and_without_per_core(self):
        targets = "fermi,et-soc1,cortex-a7"
        keys = ("time_s", "dynamic_power_W", "idle_J")
        times = []
        for options in ((), ("--per-core",)):
            self.work("--energy", targets, "--stats", self.stats_path, *options)
            stats = self.stats()
            self.assertEqual("per_core" in stats, bool(options))
            later, _ = self.estimate(target=targets)
            for estimates in (stats["energy"], later["targets"]):
                times.append([[e[key] for key in keys] for e in estimates])
        self.assertEqual(times[1:], times[:-1])
        # Two of the program's eight cores do more than the others.
        mean = self.stats()["guest_instructions"] / 8
        longest = max(sum(c["classes"].values()) for c in self.stats()["longest_cores"])
        self.assertGreater(longest, 1.5 * mean)
        self.assertGreaterEqual(times[0][2][0], longest / 1.2e9)  # cortex-a7: 1.2 GHz

    def test_time_power_and_the_other_parts_of_6_1(self):
        self.work("--stats", self.stats_path)
        result, _ = self.estimate("--seconds", "0.001", "--transfer", "6MBx10", "--cpu",
                                  GOLDEN / "transpose.trace", "--cpu-target", "cortex-a7",
                                  target="fermi")
        fermi = result["targets"][0]
        self.assertEqual((fermi["time_s"], fermi["time_is_assumed"]), (0.001, False))
        self.assertTrue(math.isclose(fermi["dynamic_power_W"],
                                     fermi["dynamic"]["value_J"] / 0.001))
        self.assertTrue(math.isclose(fermi["transfer_s"], 10 * (10e-6 + 6 * 2**20 / 6e9)))
        self.assertTrue(math.isclose(fermi["transfer_J"], 40 * fermi["transfer_s"]))
        self.assertTrue(math.isclose(fermi["idle_J"], 100.9 * (0.001 + fermi["transfer_s"])))
        parts = fermi["dynamic"]["value_J"] + fermi["transfer_J"] + fermi["idle_J"]
        self.assertTrue(math.isclose(fermi["total"]["value_J"], parts + fermi["cpu"]["value_J"]))

    def test_traces_go_out_and_come_back(self):
        self.work("--stats", self.stats_path)
        trace = self.folder / "t.trace"
        self.run_gpusim("energy", "trace", self.stats_path, "--per-function", "-o", trace)
        self.assertIn("Kernel name: divides\n", trace.read_text())
        self.run_gpusim("energy", "estimate", trace, "--target", "fermi", "--json", "a.json")
        self.run_gpusim("energy", "estimate", self.stats_path, "--target", "fermi", "--json",
                        "b.json")
        a, b = (json.loads((self.folder / n).read_text())["targets"][0]["dynamic"]
                for n in ("a.json", "b.json"))
        self.assertEqual(a, b)
        text = self.run_gpusim("energy", "trace", self.stats_path, "--name", "k").stdout
        self.assertTrue(text.startswith("Kernel name: k\nInteger_arithmetic: "))

    def test_golden_output(self):
        cases = {
            "estimate": ["estimate", "transpose.trace", "--target",
                         "fermi,ptx-volta/papi-o0,et-soc1,cortex-a7"],
            "estimate_all": ["estimate", "transpose.trace", "--target", "all"],
            "timeline": ["timeline", "schedule.json", "--target", "fermi"],
            "log": ["log", "supply.log", "--idle", "100"],
            "targets": ["targets"],
            "target_fermi": ["targets", "fermi"],
            "target_et-soc1": ["targets", "et-soc1"],
        }
        for name, words in cases.items():
            with self.subTest(name):
                text = self.run_gpusim("energy", *words, cwd=GOLDEN).stdout
                path = GOLDEN / f"{name}.txt"
                if os.environ.get("GPUSIM_UPDATE_GOLDEN"):
                    path.write_text(text)
                self.assertEqual(text, path.read_text())
        csv = self.folder / "curve.csv"
        self.run_gpusim("energy", "timeline", GOLDEN / "schedule.json", "--target", "fermi",
                        "--csv", csv)
        rows = [line.split(",") for line in csv.read_text().splitlines()]
        self.assertEqual(rows[0], ["time_s", "power_W", "state", "what"])
        energy = sum(float(a[1]) * (float(b[0]) - float(a[0]))
                     for a, b in zip(rows[1::2], rows[2::2]))
        self.assertIn(f"{energy / 1000:.4g} kJ",
                      (GOLDEN / "timeline.txt").read_text().splitlines()[-1])

    # Bad input

    def test_the_template_as_json_is_a_target_file(self):
        mine = self.folder / "mine.json"
        mine.write_text(self.run_gpusim("energy", "targets", "template", "--json").stdout)
        self.work("--energy", mine, "--stats", self.stats_path)
        self.assertEqual(self.stats()["energy"][0]["target"], "template")

    def test_bad_input_is_one_clear_line(self):
        self.work("--stats", self.stats_path)
        good = self.stats()

        def changed(**changes):
            path = self.folder / "bad.json"
            path.write_text(json.dumps({**good, **changes}))
            return self.refused("energy", "estimate", path, "--target", "fermi")

        one_less = {k: v for k, v in good["classes"].items() if k != "other"}
        self.assertIn("\"other\" is missing", changed(classes=one_less))
        self.assertIn("is -5", changed(classes={**good["classes"], "other": -5}))
        self.assertIn("not JSON", changed(classes={**good["classes"], "other": math.nan}))
        self.assertIn("add up", changed(guest_instructions=1))
        self.assertIn("empty", changed(classes=dict.fromkeys(good["classes"], 0),
                                       guest_instructions=0))
        self.assertIn("do not add up", changed(functions=good["functions"][:1]))
        for text, expected in (("", "empty"), ("[1]", "neither"), ("{", "not JSON"),
                               ("Kernel name: k\nControl: -1\n", "line 2")):
            path = self.folder / "bad"
            path.write_text(text)
            self.assertIn(expected, self.refused("energy", "estimate", path, "--target", "fermi"))
        estimate = ["energy", "estimate", self.stats_path, "--target"]
        self.assertIn("No such file",
                      self.refused("energy", "estimate", "none", "--target", "fermi"))
        self.assertIn("directory",
                      self.refused("energy", "estimate", ".", "--target", "fermi").lower())
        self.assertIn("unknown energy target kepler", self.refused(*estimate, "kepler"))
        self.assertIn("--target is required", self.refused(*estimate[:-1]))
        self.assertIn("--seconds", self.refused(*estimate, "fermi", "--seconds", "0"))
        self.assertIn("--seconds", self.refused(*estimate, "fermi", "--seconds", "nan"))
        self.assertIn("--transfer", self.refused(*estimate, "fermi", "--transfer", "1Kx"))
        self.assertIn("transfers", self.refused(*estimate, "et-soc1", "--transfer", "1K"))
        self.assertIn("--json", self.refused(*estimate, "fermi", "--json", "none/x.json"))
        self.assertIn("--cpu-target", self.refused(*estimate, "fermi", "--cpu", self.stats_path))
        self.assertIn("unknown energy target",
                      self.refused("run", self.guest, "--energy", "kepler"))
        self.assertIn("unit of power", self.bad_target("unit", "W"))
        self.assertIn("a number", self.bad_target("value", None))
        self.assertIn("date", self.refused("energy", "log", self.stats_path))
        self.assertIn("one target", self.refused("energy", "timeline", GOLDEN / "schedule.json",
                                                 "--target", "fermi,et-soc1"))
        self.assertIn("\"steps\"", self.refused("energy", "timeline", self.stats_path, "--target",
                                                "fermi"))

    def bad_target(self, key, value):
        template = HERE.parents[2] / "energy" / "targets" / "template.json"
        target = json.loads(template.read_text())
        target["measurements"]["one"][key] = value
        path = self.folder / "mine.json"
        path.write_text(json.dumps(target))
        return self.refused("energy", "targets", path)

    def test_a_target_of_ones_own(self):
        self.work("--stats", self.stats_path)
        template = HERE.parents[2] / "energy" / "targets" / "template.json"
        (self.folder / "mine.json").write_text(template.read_text().replace('"nJ"', '"mJ"'))
        result, _ = self.estimate(target="./mine.json")
        instructions = result["guest_instructions"]
        self.assertTrue(math.isclose(result["targets"][0]["dynamic"]["value_J"],
                                     instructions * 1e-3))


if __name__ == "__main__":
    Energy.gpusim = pathlib.Path(sys.argv[1]).resolve()
    Energy.build = pathlib.Path(sys.argv[2]).resolve()
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
