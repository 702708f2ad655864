#!/usr/bin/env python3
"""`gpusim run --chip` (docs/chip.md).

  test_chip.py GPUSIM SOURCE_FOLDER BUILD_FOLDER [UNITTEST ARGUMENT]...
"""

import json
import pathlib
import subprocess
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from gpusim_case import GpusimCase  # noqa: E402

CROSS = "/usr/bin/aarch64-linux-gnu-gcc"
BARE = ["-march=armv8.1-a", "-static", "-nostdlib", "-ffreestanding", "-fno-pie", "-no-pie",
        "-fno-stack-protector", "-mno-outline-atomics"]


class Chip(GpusimCase):
    command = ("run",)
    timeout_s = 240
    source: pathlib.Path
    build: pathlib.Path

    @classmethod
    def setUpClass(cls):
        cls.build.mkdir(parents=True, exist_ok=True)
        cls.guest = cls.build / "chip.elf"
        library = cls.source / "libgpusim" / "guest"
        runtime = [library / f"{name}.c" for name in ("runtime", "services", "region", "print",
                                                      "freestanding")]
        runtime += [*sorted((library / "sync").glob("*.c")), library / "aarch64" / "start.S"]
        compiler = [CROSS, "-O2", "-g", *BARE, f"-I{library}"]
        subprocess.run([*compiler, "-o", cls.guest, HERE / "guests.c", *runtime], check=True)
        cls.nbody = cls.build / "nbody.elf"
        subprocess.run([*compiler, "-fno-math-errno", "-DN=96", "-DSTEPS=1", "-o", cls.nbody,
                        cls.source / "examples" / "nbody.c", *runtime, "-lgcc"], check=True)
        cls.chips = {path.stem: json.loads(path.read_text())
                     for path in (cls.source / "host" / "chip" / "chips").glob("*.json")}

    def on_chip(self, chip, cores, *words, options=()):
        """The statistics of guests.c with these words on a chip: a name, or a description."""
        return self.run_on_chip(self.guest, chip, cores, *words, options=options)

    def run_on_chip(self, program, chip, cores, *words, options=()):
        if isinstance(chip, dict):
            path = self.folder / "chip.json"
            path.write_text(json.dumps(chip))
            chip = path
        stats = self.folder / "stats.json"
        self.run_gpusim(program, "--chip", chip, "--cores", cores, "--quiet", "--per-core",
                        "--stats", stats, *options, "--", *words)
        return json.loads(stats.read_text())

    def changed(self, name, **parts):
        chip = json.loads(json.dumps(self.chips[name]))
        for part, keys in parts.items():
            if isinstance(keys, dict):
                chip[part].update(keys)
            else:
                chip[part] = keys
        return chip

    # ---- Known figures

    def test_chasing_pointers_costs_the_configured_latency(self):
        # 4 KiB apart: every line on slice 0, on the core's tile, with the memory; each misses.
        loads = 3000
        for latency in (100, 177):
            chip = self.changed("tutorial-4", memory={"latency_cycles": latency})
            stats = self.on_chip(chip, 1, "chase", 1 << 23, 4096, loads)["chip"]
            # In the loop: load, subtract, branch, or more; one cycle each.
            # The path: 10 + 4 + latency.
            of_path = stats["stack"]["shared"] + stats["stack"]["memory"]
            self.assertTrue(loads <= stats["memory"]["line_reads"] <= loads + 10)
            per_line = of_path / stats["memory"]["line_reads"]
            self.assertEqual(per_line, 10 + 4 + latency)
            # Cycles are the instructions and the stalls, nothing else.
            self.assertAlmostEqual(stats["cycles"], sum(stats["stack"].values()))
            self.assertTrue(3 * loads <= stats["stack"]["compute"] <= 3 * loads + 50)

    def test_streams_get_the_configured_bandwidth(self):
        for wide in (8, 16):
            chip = self.changed("tutorial-4", memory={"bytes_per_cycle": wide},
                                cores={"outstanding_loads": 16})
            stats = self.on_chip(chip, 4, "stream", 1 << 18)["chip"]
            rate = stats["memory"]["bytes"] / stats["cycles"]
            self.assertTrue(0.98 * wide < rate <= wide, rate)
            self.assertTrue(max(stats["channel_use"]) <= 1, stats["channel_use"])

    def test_misses_are_those_of_the_cache_model(self):
        caches = self.folder / "caches.json"
        caches.write_text(json.dumps({"levels": [{"name": "L1", "size": "4K", "ways": 2}]}))
        stats = self.folder / "s.json"
        self.run_gpusim(self.guest, "--caches", caches, "--quiet", "--stats", stats, "--", "mixed",
                        5000)
        level = json.loads(stats.read_text())["caches"]["levels"][0]
        one = self.on_chip("tutorial-4", 1, "mixed", 5000)["chip"]["l1"]
        # Looks at barriers are left out here.
        self.assertLess(abs(one["accesses"] - level["reads"] - level["writes"]),
                        0.02 * one["accesses"])
        self.assertLess(abs(one["misses"] - level["read_misses"] - level["write_misses"]),
                        0.01 * one["misses"])

    def test_false_sharing_is_found_and_named(self):
        close = self.on_chip("tutorial-4", 4, "count", 400, 1)["chip"]
        apart = self.on_chip("tutorial-4", 4, "count", 400, 8)["chip"]
        self.assertGreater(close["misses"]["false_sharing"], 100)
        self.assertGreater(close["cycles"], 1.5 * apart["cycles"])
        self.assertEqual(apart["false_sharing"], [])
        pair = close["false_sharing"][0]
        for side in ("writer", "reader"):
            self.assertIn("guests.c:", pair[side])
            self.assertIn("count_up", pair[side])

    def test_locks_exclude_each_other_in_simulated_time(self):
        rounds, length, cores = 20, 1000, 4
        alone = self.on_chip("tutorial-4", cores, "locks", rounds, length, 1, 0)["chip"]
        for kind in (0, 1, 2):
            one = self.on_chip("tutorial-4", cores, "locks", rounds, length, 0, kind)["chip"]
            self.assertEqual(one["locks"]["taken"], cores * rounds)
            # Work in the lock: 2 instructions a round.
            self.assertGreater(one["cycles"], cores * rounds * length * 2)
            self.assertLess(one["cycles"], 1.1 * cores * rounds * length * 2)
            self.assertGreater(one["stack"]["waiting"], alone["stack"]["waiting"])
            self.assertEqual(one["remarks"], [])
        self.assertLess(alone["cycles"], 1.1 * rounds * length * 2)
        self.assertEqual(alone["locks"]["contended"], 0)

    def test_words_that_change_order_cores(self):
        length = 5000
        stats = self.on_chip("tutorial-4", 2, "relay", length)["chip"]
        self.assertEqual(stats["remarks"], [])
        ends = [core["cycles"] for core in stats["per_core"]]
        for before, after in zip(ends, ends[1:]):
            self.assertGreater(after, before + 2 * length)
        self.assertLess(ends[-1], 1.06 * 2 * 2 * length)

    # ---- The same however it is run

    def test_time_does_not_depend_on_the_run(self):
        runs = [("--backend", "scalar"), ("--backend", "simd", "--threads", 1),
                ("--backend", "simd", "--threads", 2), ("--backend", "simd", "--no-native"),
                ("--backend", "simd", "--group-width", 4), ("--backend", "simd", "--slice", 500),
                ("--backend", "scalar", "--slice", 333)]
        for chip, cores in (("tutorial-4", 4), ("mesh-1024", 40), ("et-soc1", 40)):
            seen = []
            for options in runs:
                stats = self.on_chip(chip, cores, "mixed", 1000, options=options)["chip"]
                seen.append({key: stats[key] for key in (
                    "cycles", "stack", "misses", "l1", "shared", "network", "memory", "coherence",
                    "remarks", "per_core", "functions", "link_use", "energy")})
            for options, one in zip(runs[1:], seen[1:]):
                for key, value in one.items():
                    self.assertEqual(value, seen[0][key], f"{chip} {options} {key}")
            self.assertEqual(seen[0]["remarks"], [])

    def test_time_of_an_example_does_not_depend_on_the_run(self):
        # Short slices: cores are held back for many of them, and another one opens barriers.
        runs = [("--backend", "simd"), ("--slice", 3000), ("--slice", 1000), ("--slice", 300),
                ("--group-width", 8), ("--threads", 2, "--slice", 1000), ("--backend", "scalar"),
                ("--backend", "scalar", "--slice", 1000)]
        for chip, cores in (("bus-8", 8), ("mesh-1024", 64), ("mempool-256", 64)):
            seen = []
            for options in runs:
                chip_stats = self.run_on_chip(self.nbody, chip, cores, options=options)["chip"]
                seen.append({key: chip_stats[key] for key in (
                    "cycles", "stack", "misses", "network", "memory", "coherence", "remarks")})
            for options, one in zip(runs[1:], seen[1:]):
                self.assertEqual(one, seen[0], f"{chip} {options}")

    # ---- What comes out

    def test_stacks_add_up(self):
        for chip in ("tutorial-4", "bus-8", "mempool-256"):
            with self.subTest(chip):
                stats = self.on_chip(chip, 4, "mixed", 500)["chip"]
                for core in stats["per_core"]:
                    self.assertAlmostEqual(sum(core["stack"].values()), core["cycles"], delta=1)
                for parts in ("functions", "lines"):
                    total = sum(part["cycles"] for part in stats[parts])
                    waiting = stats["stack"]["waiting"]
                    # Barriers are not of a place.
                    self.assertLess(total, sum(stats["stack"].values()) + 1)
                    self.assertGreater(total, 0.5 * (sum(stats["stack"].values()) - waiting))
                self.assertAlmostEqual(sum(row["joules"] for row in stats["energy"]["parts"]),
                                       stats["energy"]["joules"])

    def test_region_of_interest(self):
        marked = self.on_chip("tutorial-4", 1, "chase", 1 << 16, 64, 1000)["chip"]
        self.assertTrue(marked["region_of_interest"])
        self.assertLess(marked["instructions"], 5000)
        self.assertGreater(marked["begin_cycle"], 1000)
        named = self.on_chip("tutorial-4", 4, "count", 300, 8,
                             options=("--region", "count_up"))["chip"]
        self.assertLess(named["instructions"], 4 * 300 * 6)
        self.run_gpusim(self.guest, "--chip", "tutorial-4", "--region", "nothing", "--", "relay",
                        status=2)

    def test_threads_of_a_c_library(self):
        source, elf = self.folder / "p.c", self.folder / "p.elf"
        source.write_text("#include <pthread.h>\n#include <stdio.h>\n"
                          "static pthread_mutex_t m; static long n;\n"
                          "static void* f(void* p) { for (int i = 0; i < 200; ++i) {"
                          " pthread_mutex_lock(&m); ++n; pthread_mutex_unlock(&m); } return p; }\n"
                          "int main() { pthread_t t[3]; for (int i = 0; i < 3; ++i)"
                          " pthread_create(&t[i], 0, f, 0); for (int i = 0; i < 3; ++i)"
                          " pthread_join(t[i], 0); printf(\"%ld\\n\", n); }\n")
        subprocess.run([CROSS, "-O1", "-static", "-o", elf, source], check=True)
        done = self.run_gpusim(elf, "--cores", 4, "--chip", "bus-8", "--quiet")
        self.assertEqual(done.stdout, "600\n")
        self.assertRegex(done.stderr, r"chip bus-8: \d+ cycles")

    def test_page(self):
        page = self.folder / "page.html"
        self.on_chip("mesh-1024", 64, "mixed", 300, options=("--chip-page", page))
        text = page.read_text()
        for word in ("Where the time goes", "Floor plan", "Roofline", "<svg", "false sharing"):
            self.assertIn(word.lower(), text.lower())
        self.assertNotIn("http://", text.replace("http://www.w3.org", ""))

    def test_energy_of_targets_knows_where_accesses_were_served(self):
        stats = self.on_chip("tutorial-4", 4, "mixed", 500, options=("--energy", "et-soc1"))
        self.assertGreater(stats["classes"]["on_chip_memory"], 0)
        self.assertGreater(stats["classes"]["off_chip_memory"], 0)
        self.assertIn("energy", stats)

    def test_names_and_mistakes(self):
        listed = subprocess.run([self.gpusim, "info", "--chips"], capture_output=True, text=True,
                                check=True).stdout
        for name in self.chips:
            self.assertIn(name, listed)
        bad = self.folder / "bad.json"
        bad.write_text(json.dumps(self.changed("tutorial-4", memory={"chanels": 2})))
        for options, says in ((("--chip", "mesh-1023"), "mesh-1024"),
                              (("--chip", bad), "chanels"),
                              (("--chip", "tutorial-4", "--cores", 5), "has 4"),
                              (("--chip", "bus-8", "--simulated-time"), "--simulated-time"),
                              (("--chip-page", "x.html"), "--chip"),
                              (("--chip", "bus-8", "--checkpoint", "x"), "--chip")):
            done = self.run_gpusim(self.guest, *options, status=2)
            self.assertRegex(done.stderr, r"\Agpusim: error: [^\n]+\n\Z")
            self.assertIn(says, done.stderr)


if __name__ == "__main__":
    Chip.gpusim = pathlib.Path(sys.argv[1]).resolve()
    Chip.source = pathlib.Path(sys.argv[2]).resolve()
    Chip.build = pathlib.Path(sys.argv[3]).resolve()
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
    def test_changed_keys_are_those_of_a_changed_file(self):
        changed = self.changed("tutorial-4", memory={"latency_cycles": 177},
                               l1_data={"size": "8K"})
        of_file = self.on_chip(changed, 4, "mixed", 200)["chip"]
        keys = ("memory.latency_cycles=177", "l1_data.size=8K")
        of_keys = self.on_chip(",".join(("tutorial-4", *keys)), 4, "mixed", 200)["chip"]
        self.assertEqual(of_keys["changes"], dict(key.split("=") for key in keys))
        for key in set(of_file) - {"changes"}:
            self.assertEqual(of_keys[key], of_file[key], key)
        as_it_is = self.on_chip("tutorial-4", 4, "mixed", 200)["chip"]
        self.assertEqual(as_it_is["changes"], {})
        self.assertNotEqual(as_it_is["cycles"], of_keys["cycles"])
        # A file, too; and a list, whose commas are its own.
        path = self.folder / "my,chip.json"
        path.write_text(json.dumps(self.chips["tutorial-4"]))
        done = self.run_gpusim(self.guest, "--chip", path, "--quiet", "--", "relay", 9)
        self.assertIn("chip tutorial-4: ", done.stderr)
        path = path.rename(self.folder / "chip.json")
        change = f"{path},memory.channels=2,memory.tiles=[1,3]"
        done = self.run_gpusim(self.guest, "--chip", change, "--quiet", "--", "relay", 9)
        self.assertIn("chip tutorial-4,memory.channels=2,memory.tiles=[1,3]: ", done.stderr)

                              (("--chip", "bus-8,shared.sise=1M"), "did you mean size?"),
                              (("--chip", "bus-8,shared.sise=1M"), "slices, ways"),
                              (("--chip", "bus-8,shared.size=some"), "\"size\" must be"),
