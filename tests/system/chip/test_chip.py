#!/usr/bin/env python3
"""`gpusim run --chip` (docs/chip.md).

  test_chip.py GPUSIM SOURCE_FOLDER BUILD_FOLDER [UNITTEST ARGUMENT]...
"""

import html
import json
import os
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
        for name in ("histogram", "fft", "matmul_int"):
            subprocess.run([*compiler, "-fno-math-errno", "-o", cls.build / f"{name}.elf",
                            cls.source / "examples" / f"{name}.c", *runtime, "-lgcc"], check=True)
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

    # ---- The pipeline

    def cycles_of_round(self, stream, **parts):
        """Cycles, and the stack, of one round of a stream of instructions of guests.c."""
        chip = self.changed("tutorial-4", **parts)
        few, many = (self.on_chip(chip, 1, "pipeline", stream, rounds)["chip"]
                     for rounds in (100, 300))
        stack = {key: (many["stack"][key] - few["stack"][key]) / 200 for key in few["stack"]}
        cycles = (many["cycles"] - few["cycles"]) / 200
        self.assertAlmostEqual(sum(stack.values()), cycles)
        of_function = {key: sum(f["stack"][key] for f in many["functions"]
                                if f["function"] == f"stream_{stream}") for key in stack}
        return cycles, stack, of_function

    def test_results_are_ready_after_their_latency(self):
        latency = {"integer_multiplication": 4, "double_arithmetic": 5}
        cases = [
            # A chain: each waits for the one before, also over the loop's end.
            ("multiply", 32 * 4, 32 * 3 - 2, 0),
            ("doubles", 32 * 5, 32 * 4 - 2, 0),
            ("adds", 34, 0, 0),
            # Nobody waits: as many instructions as there are.
            ("multiplies", 34, 0, 0),
            # Two chains share the time.
            ("two", 16 * 4, 16 * 4 - 34, 0),
            # Blocks of two instructions; the last has four.
            ("branches", 8 * 4, 8 * 4 - 18, 0),
            # Loads that hit: three cycles to the one that uses it.
            ("load", 32 * 3, 0, 32 * 3 - 34),
            ("loads", 34, 0, 0),
            ("uses", 8 * 4 + 2, 0, 8),
        ]
        for stream, cycles, dependence, l1 in cases:
            with self.subTest(stream):
                got, stack, of_function = self.cycles_of_round(
                    stream, cores={"latency": latency}, l1_data={"hit_cycles": 3})
                self.assertEqual(got, cycles)
                self.assertEqual(stack["dependence"], dependence)
                self.assertEqual(stack["l1"], l1)
                self.assertEqual(stack["compute"], cycles - dependence - l1)
                # The region begins with a window, as far as instructions are counted.
                for key in ("compute", "dependence", "l1"):
                    self.assertAlmostEqual(of_function[key], 300 * stack[key], delta=1100)

    def test_latencies_beside_other_keys_of_cores(self):
        latency = {"integer_multiplication": 4}
        for stream, cores, cycles in (
                # The jump waits for what it looks at.
                ("multiplies", {"issue_width": 2}, 34 / 2 + 1 / 2),
                ("multiply", {"issue_width": 2}, 128),
                # Two instructions, and three cycles for the jump; the round's own jump, too.
                ("branches", {"taken_branch_cycles": 3}, 8 * 5 + 2 + 3),
                ("multiply", {"cycles": {"integer_arithmetic": 6}}, 32 * 6 + 6 + 1)):
            with self.subTest(stream=stream, cores=cores):
                self.assertEqual(
                    self.cycles_of_round(stream, cores={"latency": latency, **cores})[0], cycles)
        # What taken branches cost is their function's, with latencies and without.
        for cores in ({}, {"latency": latency}):
            cycles, stack, of_function = self.cycles_of_round(
                "branches", cores={"taken_branch_cycles": 3, **cores})
            self.assertEqual(stack["compute"], cycles)
            self.assertAlmostEqual(of_function["compute"], 300 * cycles, delta=1100)
        # Without: whatever reads what.
        self.assertEqual(self.cycles_of_round("multiply", cores={})[0], 34)
        self.assertEqual(self.cycles_of_round("load", l1_data={"hit_cycles": 3})[0],
                         32 * 3 + 2)

    def test_a_load_that_misses_is_waited_for_where_it_is_used(self):
        def per_load(step, **cores):
            chip = self.changed("tutorial-4", cores=cores)
            few, many = (self.on_chip(chip, 1, "chase", 1 << 23, step, loads)["chip"]
                         for loads in (1000, 2000))
            return (many["cycles"] - few["cycles"]) / 1000
        # A load, two more instructions, and the way to memory; with several loads under way these
        # two are done meanwhile, and the next load waits for its address, if latencies are known.
        path = per_load(4096) - 3
        self.assertGreaterEqual(path, 10 + 4 + 100)
        self.assertEqual(per_load(4096, latency={}), 3 + path)
        self.assertEqual(per_load(4096, outstanding_loads=8, latency={}), 1 + path)
        self.assertLess(per_load(4096, outstanding_loads=8), path / 4)
        # What a load brings is added at once: one load at a time. Four loads, then the next four.
        chip = self.changed("tutorial-4", cores={"outstanding_loads": 16, "latency": {}})
        for name, least, most in (("stream", 1.5, 2), ("ahead", 15.5, 16)):
            stats = self.on_chip(chip, 4, name, 1 << 18)["chip"]
            rate = stats["memory"]["bytes"] / stats["cycles"]
            self.assertTrue(least < rate <= most, f"{name} {rate}")

    def test_latencies_do_not_depend_on_the_run(self):
        runs = [("--backend", "simd"), ("--slice", 1000), ("--group-width", 8),
                ("--threads", 2, "--slice", 1000), ("--backend", "scalar")]
        for name, cores in (("bus-8", 8), ("mempool-256", 64)):
            chip = self.changed(name, cores={"latency": {
                "float_arithmetic": 4, "integer_multiplication": 3, "double_arithmetic": 4.5}})
            seen = []
            for options in runs:
                stats = self.run_on_chip(self.nbody, chip, cores, options=options)["chip"]
                seen.append({key: stats[key] for key in (
                    "cycles", "stack", "misses", "functions", "lines", "network", "per_core",
                    "remarks")})
            self.assertGreater(seen[0]["stack"]["dependence"], 1000)
            for options, one in zip(runs[1:], seen[1:]):
                for key, value in one.items():
                    self.assertEqual(value, seen[0][key], f"{name} {options} {key}")

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
        self.assertLess(ends[-1], 1.15 * 2 * 2 * length)

    def test_waits_that_the_program_s_end_ends_are_no_remark(self):
        for chip in ("tutorial-4", "mesh-1024", "et-soc1", "mempool-256"):
            with self.subTest(chip):
                stats = self.on_chip(chip, 4, "leave", 5000)["chip"]
                self.assertEqual(stats["remarks"], [])
                self.assertGreater(stats["cycles"], 2 * 5000)

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

    @unittest.skipUnless("cuda" in os.environ.get("GPUSIM_TEST_BACKENDS", ""), "of devices")
    def test_time_on_a_device_does_not_depend_on_the_run(self):
        # The device says which cores sleep: short slices hold cores back that do not.
        for program, chip, cores, words in ((self.nbody, "bus-8", 8, ()),
                                            (self.nbody, "mempool-256", 64, ()),
                                            (self.guest, "mesh-1024", 40, ("mixed", 1000))):
            seen = []
            for options in (("--backend", "simd"), ("--backend", "cuda"),
                            ("--backend", "cuda", "--slice", 1000),
                            ("--backend", "cuda", "--slice", 300)):
                stats = self.run_on_chip(program, chip, cores, *words, options=options)["chip"]
                seen.append({key: stats[key] for key in (
                    "cycles", "stack", "misses", "network", "memory", "coherence", "remarks")})
                self.assertEqual(seen[-1], seen[0], f"{chip} {options}")

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

    def test_region_by_instructions(self):
        whole = self.on_chip("tutorial-4", 4, "mixed", 1000)["chip"]
        half = whole["instructions"] // 2

        def region(text, *options):
            return self.on_chip("tutorial-4", 4, "mixed", 1000,
                                options=("--region", text, *options))["chip"]
        first, second = region(f"0..{half}"), region(f"{half}..")
        window = 4 * self.chips["tutorial-4"]["interval_cycles"]
        for part in first, second:
            self.assertTrue(part["region_of_interest"])
            self.assertEqual(part["remarks"], [])
            self.assertTrue(abs(part["instructions"] - half) <= window, part["instructions"])
        self.assertEqual(first["begin_cycle"], 0)
        self.assertEqual(second["begin_cycle"], first["cycles"])
        # Together they are the run.
        self.assertEqual(first["cycles"] + second["cycles"], whole["cycles"])
        for key in ("instructions", "stack", "misses", "l1", "shared", "memory", "network"):
            whole_of = whole[key] if isinstance(whole[key], dict) else {key: whole[key]}
            for name, value in whole_of.items():
                if not name.endswith("per_second"):
                    a, b = (part[key][name] if isinstance(whole[key], dict) else part[key]
                            for part in (first, second))
                    self.assertAlmostEqual(a + b, value, 5, f"{key}.{name}")
        for options in (("--backend", "scalar"), ("--slice", 333)):
            again = region(f"0..{half}", *options)
            for key in ("cycles", "instructions", "stack", "misses"):
                self.assertEqual(again[key], first[key], f"{options} {key}")
        self.assertIn("never reached", region("1000000000..")["remarks"][0])
        self.assertIn("ended before", region("1..1000000000")["remarks"][0])
        for text, says in (("5..5", "ends before it begins"), ("1..x", '"x" is no number'),
                           ("-1..2", '"-1" is no number')):
            done = self.run_gpusim(self.guest, "--chip", "tutorial-4", f"--region={text}", "--",
                                   "relay", status=2)
            self.assertIn(says, done.stderr)

    def test_instruction_limits(self):
        stats = self.folder / "stats.json"
        self.run_gpusim(self.guest, "--chip", "tutorial-4", "--cores", 2, "--quiet",
                        "--max-instructions", 5000, "--stats", stats, "--", "locks", 100, 1000, 1,
                        0, status=124)
        stats = json.loads(stats.read_text())
        chip = stats["chip"]
        self.assertTrue(10000 <= stats["guest_instructions"] <= 10002)
        self.assertLessEqual(chip["instructions"], stats["guest_instructions"])
        # The region began, and the run ended in it.
        self.assertGreater(chip["instructions"] + chip["skipped_instructions"], 9000)

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
        self.assertRegex(done.stderr, r"chip bus-8: [\d,]+ cycles")

    def test_page(self):
        page = self.folder / "page.html"
        self.on_chip("mesh-1024", 64, "mixed", 300, options=("--chip-page", page))
        text = page.read_text()
        for word in ("Where the time goes", "Floor plan", "Roofline", "<svg", "false sharing"):
            self.assertIn(word.lower(), text.lower())
        self.assertNotIn("http://", text.replace("http://www.w3.org", ""))

    def test_profiles_and_statistics_have_the_page_s_pictures(self):
        page, chip_page = self.folder / "profile.html", self.folder / "page.html"
        chip = "mesh-1024,memory.latency_cycles=120"
        stats = self.on_chip(chip, 64, "mixed", 300,
                             options=(f"--profile={page}", "--chip-page", chip_page))["chip"]
        text = page.read_text()
        for word in (f"On chip {chip}", "Where the time goes", "Floor plan", "Roofline",
                     "Bytes from tile", "Lanes and waiting"):
            self.assertIn(word, text)
        for word in (f"{round(stats['cycles']):,} cycles, ", "Of the cores' cycles"):
            self.assertIn(word, html.unescape(text))
            self.assertIn(word, html.unescape(chip_page.read_text()))
        traffic, roofline = stats["traffic"], stats["roofline"]
        self.assertEqual(traffic["tiles_of_group"], 32)
        self.assertEqual([len(row) for row in traffic["bytes"]], [32] * 32)
        self.assertGreater(sum(map(sum, traffic["bytes"])), 8 * stats["network"]["messages"])
        self.assertEqual(roofline["peak_operations_per_second"], 64 * stats["clock_hz"])
        self.assertAlmostEqual(roofline["operations_per_byte"],
                               stats["operations"] / stats["memory"]["bytes"])
        small = self.on_chip("tutorial-4", 4, "mixed", 300)["chip"]
        self.assertEqual(sum(small["traffic"]["bytes"], []), small["bytes_between_tiles"])

    def timeline(self, chip, cores, *words, options=()):
        """Statistics, and events of a timeline by name: of cores, and of counters."""
        path = self.folder / "timeline.json"
        stats = self.on_chip(chip, cores, *words,
                             options=("--chip-timeline", path, *options))["chip"]
        trace = json.loads(path.read_text())
        self.assertEqual(set(trace), {"displayTimeUnit", "otherData", "traceEvents"})
        phases, counters = {}, {}
        for event in trace["traceEvents"]:
            self.assertIn(event["ph"], "MXC")
            if event["ph"] == "X" and event["tid"] != 0:
                phases.setdefault(event["tid"] - 1, []).append(event)
            elif event["ph"] == "C":
                counters.setdefault(event["name"], []).append(event)
        return stats, trace, phases, counters

    def test_timelines_add_up_to_the_statistics(self):
        for chip, cores, words in (("tutorial-4", 2, ("relay", 3000)),
                                   ("tutorial-4", 4, ("mixed", 1000)),
                                   ("bus-8", 8, ("mixed", 300)),
                                   ("mesh-1024", 100, ("mixed", 100))):
            with self.subTest(chip=chip, words=words):
                stats, trace, phases, counters = self.timeline(chip, cores, *words)
                self.assertFalse(stats["region_of_interest"])
                about = trace["otherData"]
                self.assertEqual(about["shown_cores"], min(cores, 64))
                self.assertEqual(len(phases), min(cores, 64))
                for core, events in phases.items():
                    sums = dict.fromkeys(stats["stack"], 0)
                    time = 0
                    for event in events:
                        # One after the other, without gaps.
                        self.assertAlmostEqual(event["ts"], time / stats["clock_hz"] * 1e6, 6)
                        sums[event["cat"]] += event["args"]["cycles"]
                        time += event["args"]["cycles"]
                        self.assertAlmostEqual(
                            event["dur"], event["args"]["cycles"] / stats["clock_hz"] * 1e6, 6)
                    self.assertEqual(sums, stats["per_core"][core]["stack"])
                    for before, after in zip(events, events[1:]):
                        self.assertNotEqual(before["name"], after["name"])
                sums = dict.fromkeys(stats["stack"], 0)
                for event in counters["all cores, %"]:
                    for name, share in event["args"].items():
                        sums[name.split(":")[0]] += (share / 100 * cores *
                                                     about["piece_cycles"])
                for part, cycles in sums.items():
                    self.assertAlmostEqual(cycles, stats["stack"][part], delta=1e-6 * cycles + 1)
                # Of links and channels: mean use times length.
                for name, use in (("links, %", "link_use"), ("memory channels, %", "channel_use")):
                    samples = counters[name]
                    mean = sum(a["args"]["mean"] * (b["ts"] - a["ts"])
                               for a, b in zip(samples, samples[1:])) / samples[-1]["ts"]
                    whole = stats[use]
                    if chip != "mesh-1024":  # its links' numbers have gaps
                        self.assertAlmostEqual(mean / 100, sum(whole) / len(whole), delta=1e-3)
                for event in counters["memory channels, %"][:-1]:
                    each = [v for k, v in event["args"].items() if k.startswith("channel ")]
                    self.assertEqual(len(each), len(stats["channel_use"]))
                    self.assertAlmostEqual(sum(each) / len(each), event["args"]["mean"], 6)

    def test_timelines_tell_what_cores_wait_for(self):
        stats, _, phases, _ = self.timeline("tutorial-4", 4, "locks", 20, 1000, 0, 0)
        names = {event["name"] for events in phases.values() for event in events}
        self.assertIn("waiting: lock", names)
        self.assertIn("compute", names)
        for_locks = sum(event["args"]["cycles"] for events in phases.values()
                        for event in events if event["name"] == "waiting: lock")
        self.assertGreater(for_locks, 0.9 * stats["stack"]["waiting"])
        # A timeline changes nothing, and is of the whole run, with the region in it.
        plain = self.on_chip("tutorial-4", 1, "chase", 1 << 16, 64, 1000)["chip"]
        stats, trace, phases, _ = self.timeline("tutorial-4", 1, "chase", 1 << 16, 64, 1000)
        self.assertEqual(stats, plain)
        region, = (e for e in trace["traceEvents"]
                   if e["ph"] == "X" and e["name"] == "region of interest")
        self.assertEqual(region["args"]["cycles"], stats["cycles"])
        self.assertAlmostEqual(region["ts"], stats["begin_cycle"] / stats["clock_hz"] * 1e6, 6)
        self.assertGreaterEqual(sum(e["args"]["cycles"] for e in phases[0]),
                                stats["begin_cycle"] + stats["cycles"])

    # ---- Pieces in detail

    def test_sampled_cycles_are_as_near_as_they_say(self):
        for name, chip, cores, plan in (("nbody", "bus-8", 8, "detail=2K,skip=20K"),
                                        ("histogram", "bus-8", 8, "detail=20K,skip=200K"),
                                        ("fft", "mempool-256", 64, "detail=20K,skip=200K"),
                                        ("matmul_int", "bus-8", 8, "detail=100K,skip=500K"),
                                        ("matmul_int", "mempool-256", 64, "detail=20K,skip=200K")):
            with self.subTest(name=name, chip=chip):
                elf = self.build / f"{name}.elf"
                whole = self.run_on_chip(elf, chip, cores)["chip"]
                stats = self.run_on_chip(elf, chip, cores, options=("--chip-sample", plan))["chip"]
                sampling = stats["sampling"]
                self.assertGreater(sampling["pieces"], 9)
                self.assertLess(sampling["instructions"], 0.5 * stats["instructions"])
                self.assertLessEqual(abs(stats["cycles"] - whole["cycles"]),
                                     sampling["error_cycles"])
                self.assertLess(sampling["error_cycles"], 0.5 * whole["cycles"])
                self.assertAlmostEqual(
                    stats["cycles"],
                    sampling["cycles"] / sampling["instructions"] * stats["instructions"],
                    delta=1)
                self.assertAlmostEqual(
                    sampling["error_cycles"], sampling["uncertainty_95_cycles"] +
                    abs(stats["cycles"] - sampling["modelled_cycles"]), delta=1)
                # Caches went on as ever. Who misses on shared lines depends on the order of cores.
                for level, key, part in (("l1", "accesses", 0.05), ("l1", "misses", 0.15),
                                         ("shared", "accesses", 0.15)):
                    self.assertLess(abs(stats[level][key] - whole[level][key]),
                                    part * whole[level][key] + 100, f"{level}.{key}")
                for use in "link_use", "slice_use", "channel_use":
                    self.assertLessEqual(max(stats[use]), 1.01, use)
        self.assertNotIn("sampling", whole)

    def test_pieces_are_of_the_region_and_the_same_however_it_is_run(self):
        def sampled(*options):
            return self.on_chip("tutorial-4", 4, "locks", 40, 1000, 1, 0,
                                options=("--chip-sample", "detail=8K,skip=8K", *options))["chip"]
        one = sampled()
        self.assertTrue(one["region_of_interest"])
        self.assertLessEqual(one["sampling"]["instructions"], one["instructions"])
        for options in (("--backend", "scalar"), ("--slice", 333)):
            again = sampled(*options)
            for key in ("cycles", "sampling", "stack", "misses"):
                self.assertEqual(again[key], one[key], f"{options} {key}")
        few = self.on_chip("tutorial-4", 1, "chase", 1 << 16, 64, 10,
                           options=("--chip-sample", "detail=1M,skip=1M"))["chip"]
        self.assertIn("in detail", few["remarks"][0])

    def test_energy_of_targets_knows_where_accesses_were_served(self):
        stats = self.on_chip("tutorial-4", 4, "mixed", 500, options=("--energy", "et-soc1"))
        self.assertGreater(stats["classes"]["on_chip_memory"], 0)
        self.assertGreater(stats["classes"]["off_chip_memory"], 0)
        self.assertIn("energy", stats)

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

    def test_names_and_mistakes(self):
        listed = subprocess.run([self.gpusim, "info", "--chips"], capture_output=True, text=True,
                                check=True).stdout
        for name in self.chips:
            self.assertIn(name, listed)
        bad = self.folder / "bad.json"
        bad.write_text(json.dumps(self.changed("tutorial-4", memory={"chanels": 2})))
        for options, says in ((("--chip", "mesh-1023"), "mesh-1024"),
                              (("--chip", bad), "chanels"),
                              (("--chip", "bus-8,shared.sise=1M"), "did you mean size?"),
                              (("--chip", "bus-8,shared.sise=1M"), "slices, ways"),
                              (("--chip", "bus-8,shared.size=some"), "\"size\" must be"),
                              (("--chip", "tutorial-4", "--cores", 5), "has 4"),
                              (("--chip", "bus-8", "--simulated-time"), "--simulated-time"),
                              (("--chip-page", "x.html"), "--chip"),
                              (("--chip-timeline", "x.json"), "--chip"),
                              (("--chip-sample", "detail=1,skip=1"), "--chip"),
                              (("--chip", "bus-8", "--chip-sample", "skip=1"), "detail=N,skip=M"),
                              (("--chip", "bus-8", "--chip-timeline", "no/x.json"),
                               "--chip-timeline"),
                              (("--chip", "bus-8", "--checkpoint", "x"), "--chip")):
            done = self.run_gpusim(self.guest, *options, status=2)
            self.assertRegex(done.stderr, r"\Agpusim: error: [^\n]+\n\Z")
            self.assertIn(says, done.stderr)


if __name__ == "__main__":
    Chip.gpusim = pathlib.Path(sys.argv[1]).resolve()
    Chip.source = pathlib.Path(sys.argv[2]).resolve()
    Chip.build = pathlib.Path(sys.argv[3]).resolve()
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
