#!/usr/bin/env python3
"""`gpusim sweep` (docs/sweep.md): points, resuming, failures, files.

  test_sweep.py GPUSIM BUILD_FOLDER [UNITTEST ARGUMENT]...
GPUSIM_SEED replays the moments of the test that kills; GPUSIM_LONG=1 kills more often.
"""
import csv
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

sys.dont_write_bytecode = True
from studies import HERE, SPREAD, SweepCase, main  # noqa: E402


class Sweep(SweepCase):
    def spread(self, *words, cores="1,2,4..32", status=0):
        return self.sweep(self.guest, *SPREAD, "--cores", cores, "-o", self.out, *words,
                          status=status)

    def results(self, folder=None):
        return json.loads(((folder or self.out) / "results.json").read_text())

    def points(self):
        return sorted((self.out / "points").glob("*.json"))

    # What a study finds

    def test_a_study_says_what_runs_say(self):
        done = self.spread("--energy", "fermi,et-soc1", "--repeat", "2")
        self.assertIn("12 points (12 ran now), 0 failed", done.stdout)
        self.assertEqual(len(self.points()), 12)
        self.assertFalse((self.out / "running").exists())
        results = self.results()
        curve, = results["curves"]
        self.assertEqual([row["cores"] for row in curve["rows"]], [1, 2, 4, 8, 16, 32])
        for row in curve["rows"]:
            stats_path = self.folder / "stats.json"
            subprocess.run([self.gpusim, "run", self.guest, *SPREAD, "--cores", str(row["cores"]),
                            "--quiet", "--per-core", "--stats", stats_path], check=True)
            stats = json.loads(stats_path.read_text())
            self.assertEqual(row["repetitions"], 2)
            self.assertEqual(row["guest_instructions"], stats["guest_instructions"])
            self.assertEqual(row["classes"], stats["classes"])
            self.assertEqual(row["busiest_core"],
                             max(c["guest_instructions"] for c in stats["per_core"]))
            energy = subprocess.run([self.gpusim, "energy", "estimate", stats_path, "--target",
                                     "fermi,et-soc1", "--json", self.folder / "e.json"],
                                    check=True, capture_output=True)
            del energy
            for ours, theirs in zip(row["energy"],
                                    json.loads((self.folder / "e.json").read_text())["targets"]):
                self.assertEqual(ours["target"], theirs["target"])
                self.assertAlmostEqual(ours["dynamic_J"] / theirs["dynamic"]["value_J"], 1)
                self.assertAlmostEqual(ours["time_s"] / theirs["time_s"], 1)
                self.assertAlmostEqual(ours["dynamic_power_W"] / theirs["dynamic_power_W"], 1)
        # 65,536 shared steps and 100 of core 0 alone.
        self.assertAlmostEqual(curve["serial_share"]["value"], 100 / 65636, delta=1e-4)
        with open(self.out / "results.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([int(r["cores"]) for r in rows], [1, 2, 4, 8, 16, 32])
        self.assertAlmostEqual(float(rows[5]["speed_up"]), curve["rows"][5]["speed_up"], 4)
        self.assertGreater(float(rows[5]["fermi J"]), 0)
        html = (self.out / "index.html").read_text()
        self.assertNotRegex(html, r"""(src|href)=["']?(https?:|//|/)""")

    def test_simulated_time(self):
        self.spread("--timing", "et-soc1", cores="1,2,4,8")
        curve, = self.results()["curves"]
        self.assertEqual(curve["work_unit"], "cycles")
        for row in curve["rows"]:
            self.assertEqual(row["simulated_time"]["target"], "et-soc1")
            self.assertGreater(row["simulated_time"]["cycles"], row["busiest_core"] / 2)
        self.assertAlmostEqual(curve["rows"][3]["speed_up"], 8, delta=0.2)

    def test_losses_are_read(self):
        self.spread(cores="64")
        row, = self.results()["curves"][0]["rows"]
        self.assertGreater(row["diverged_share"], 0)  # core 0 works alone at the end
        self.assertIn("waiting_share", row)

    def test_one_core_only(self):
        self.spread(cores="1")
        curve, = self.results()["curves"]
        self.assertEqual(len(curve["rows"]), 1)
        self.assertNotIn("serial_share", curve)

    def test_65536_cores_stay_small(self):
        self.spread("--energy", "et-soc1", cores="1,65536")
        self.assertLess((self.out / "index.html").stat().st_size, 150_000)
        for point in self.points():
            self.assertLess(point.stat().st_size, 60_000)

    def test_weak_scaling_with_filled_in_arguments(self):
        self.sweep(self.guest, "--entry", "spread", "--arg", "@core", "--arg", "@cores",
                   "--arg={cores*512}", "--arg", "0", "--scaling", "weak", "--cores", "1..16",
                   "-o", self.out)
        for row in self.results()["curves"][0]["rows"]:
            self.assertAlmostEqual(row["efficiency"], 1, 2)

    def test_a_study_file_and_the_command_line_agree(self):
        (self.folder / "s.toml").write_text(f"""
cores = [1, 2]
[[programs]]
program = "{self.guest}"
name = "sweep"
entry = "spread"
call = ["@core", "@cores", 65536, 100]
[[programs]]
program = "{self.guest}"
name = "each"
entry = "each"
scaling = "weak"
call = ["@core", "@cores"]
sizes = [{{name = "small", call = [10]}}, {{name = "large", call = [1000], cores = 4}}]
""")
        self.sweep("s.toml", "-o", "of_file")
        self.spread(cores="1,2")
        one, small, large = self.results(self.folder / "of_file")["curves"]
        self.assertEqual([small["program"], large["program"]], ["each/small", "each/large"])
        self.assertEqual([r["cores"] for r in large["rows"]], [4])
        same, = self.results()["curves"]
        for a, b in zip(one["rows"], same["rows"]):
            self.assertEqual(a["classes"], b["classes"])
        # Two studies side by side.
        self.sweep("--compare", "of_file", self.out, "-o", "both")
        rows = list(csv.DictReader((self.folder / "both/compare.csv").read_text().splitlines()))
        self.assertEqual([(r["program"], r["cores"]) for r in rows],
                         [("sweep", "1"), ("sweep", "2")])
        self.assertEqual(rows[1]["work_a"], rows[1]["work_b"])
        self.assertIn("nothing", self.refused("--compare", "of_file", "nothing", "-o", "both"))

    # Chips

    def walk(self, *words, cores="1,2,4", status=0):
        return self.sweep(self.guest, "--entry", "walk", "--arg", "@core", "--arg", "@cores",
                          "--arg", 16384, "--arg", 5, "--scaling", "weak", "--cores", cores,
                          "--chip", "tutorial-4", "-o", self.out, *words, status=status)

    def test_keys_of_a_chip_are_varied(self):
        # 16 KiB fit into the last of these.
        done = self.walk("--vary", "l1_data.size=8K..32K", "--vary", "memory.latency_cycles=50,200",
                         "--svg", "figures")
        self.assertIn("18 points (18 ran now), 0 failed", done.stdout)
        self.assertRegex(done.stdout, r"sweep/l1_data.size=8K,memory.latency_cycles=50 +4 ")
        curves = self.results()["curves"]
        self.assertEqual(
            [tuple(c["chip_values"].values()) for c in curves],
            [(size, latency) for size in ("8K", "16K", "32K") for latency in ("50", "200")])
        self.assertEqual({c["program"] for c in curves}, {"sweep"})
        self.assertEqual({c["work_unit"] for c in curves}, {"cycles"})
        # What a point says is what a run says.
        curve = curves[3]
        self.assertEqual(curve["chip"], "tutorial-4,l1_data.size=16K,memory.latency_cycles=200")
        stats = self.folder / "stats.json"
        subprocess.run([self.gpusim, "run", self.guest, "--entry", "walk", "--arg", "@core",
                        "--arg", "@cores", "--arg", "16384", "--arg", "5", "--cores", "4", "--chip",
                        curve["chip"], "--quiet", "--stats", stats], check=True,
                       stderr=subprocess.DEVNULL)
        chip = json.loads(stats.read_text())["chip"]
        ours = curve["rows"][2]["chip"]
        for key in ("cycles", "seconds", "stack", "instructions_per_cycle"):
            self.assertEqual(ours[key], chip[key], key)
        self.assertEqual(ours["energy"]["joules"], chip["energy"]["joules"])
        self.assertEqual(ours["energy"]["parts"], {part["part"]: part["joules"]
                                                   for part in chip["energy"]["parts"]})
        cycles = {tuple(c["chip_values"].values()): c["rows"][0]["chip"]["cycles"] for c in curves}
        self.assertGreater(cycles["8K", "200"], cycles["8K", "50"])
        self.assertGreater(cycles["8K", "50"], 1.3 * cycles["32K", "50"])
        # The same in every file.
        with open(self.out / "results.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual(len(rows), 18)
        for row in rows:
            self.assertEqual(row["program"], "sweep")
            self.assertEqual(row["chip"], f"tutorial-4,l1_data.size={row['l1_data.size']},"
                             f"memory.latency_cycles={row['memory.latency_cycles']}")
            if row["cores"] == "1":
                key = row["l1_data.size"], row["memory.latency_cycles"]
                self.assertEqual(float(row["chip_cycles"]), cycles[key])
            stack = sum(float(row[key]) for key in row if key.startswith("cycles "))
            self.assertLess(stack, 1.001 * int(row["cores"]) * float(row["chip_cycles"]))
            joules = sum(float(row[key]) for key in row if key.startswith("J "))
            self.assertAlmostEqual(joules / float(row["chip_J"]), 1, 6)
        tex = (self.out / "results.tex").read_text()
        self.assertIn(r"program & l1\_data.size & memory.latency\_cycles & cores", tex)
        columns = len(re.search(r"begin\{tabular\}\{([lr]+)\}", tex)[1])
        for row in (r for r in tex.splitlines() if r.endswith(r"\\")):
            self.assertEqual(len(re.findall(r"(?<!\\)&", row)), columns - 1, row)
        html = (self.out / "index.html").read_text()
        for title in ("Cycles over l1_data.size, 4 cores", "Where the cycles go, sweep on 2 cores",
                      "Energy of the chip over memory.latency_cycles, 1 core"):
            self.assertIn(title, html)
        figures = {path.stem for path in (self.folder / "figures").glob("*.svg")}
        self.assertIn("cycles-over-l1-data-size-4-cores", figures)
        # More values go on where the study was; a report needs no run.
        more = self.walk("--vary", "l1_data.size=8K..64K", "--vary",
                         "memory.latency_cycles=50,200")
        self.assertIn("24 points (6 ran now), 0 failed", more.stdout)
        before = (self.out / "results.csv").read_text()
        self.sweep("--report", self.out)
        self.assertEqual((self.out / "results.csv").read_text(), before)

    def test_chips_of_a_study_file(self):
        description = json.loads(
            (HERE.parents[2] / "host/chip/chips/tutorial-4.json").read_text())
        description["name"] = "mine"
        (self.folder / "here").mkdir()
        (self.folder / "here/mine.json").write_text(json.dumps(description))
        (self.folder / "here/s.json").write_text(json.dumps({
            "cores": [1, 2], "chip": ["tutorial-4", "mine.json,clock_hz=2e9"],
            "vary": {"shared.hit_cycles": [10, 20], "memory.tiles": "[0],[3]"},
            "programs": [{"program": str(self.guest), "entry": "walk",
                          "call": ["@core", "@cores", 8192, 2]}]}))
        self.sweep("here/s.json", "-o", self.out)
        curves = self.results()["curves"]
        self.assertEqual(len(curves), 8)
        self.assertEqual(curves[5]["label"], "sweep/here/mine.json,clock_hz=2e9,"
                         "shared.hit_cycles=10,memory.tiles=[3]")
        for ours, theirs in zip(curves[:4], curves[4:]):
            self.assertEqual(ours["chip_values"], theirs["chip_values"])
            a, b = (c["rows"][1]["chip"] for c in (ours, theirs))
            self.assertEqual(a["cycles"], b["cycles"])
            self.assertAlmostEqual(a["seconds"] / b["seconds"], 2)

    def test_mistakes_about_chips(self):
        for words, part in (
                (("--vary", "l1_data.sise=8K"), "did you mean size?"),
                (("--vary", "l1_data.size"), "expected KEY=VALUE"),
                (("--vary", "l1_data.size=8K,"), "is empty"),
                (("--vary", "l1_data.size=8K,8K"), "given twice"),
                (("--vary", "l1_data.size=8K", "--vary", "l1_data.size=4K"), "given twice"),
                (("--vary", "l1_data.size=8K..4K"), "FROM..TO"),
                (("--vary", "l1_data.size=8K..1M"), "same unit"),
                (("--vary", "l1_data.size=8K,12K"), "power of two of sets"),
                (("--vary", "memory.latency_cycles=1..5000+1"), "more than 1000 values"),
                (("--simulated-time",), "exclude each other"),
                (("--run-option=--chip=bus-8",), "exclude each other"),
                (("--chip", "tutorial-5"), "chips are")):
            with self.subTest(words=words):
                done = self.walk(*words, status=2)
                self.assertRegex(done.stderr, r"\Agpusim: error: [^\n]+\n\Z")
                self.assertIn(part, done.stderr)
        self.assertIn("has 4 cores, too few for --cores 8",
                      self.walk(cores="8", status=2).stderr)
        self.assertIn("--vary needs --chip", self.refused(
            self.guest, "--cores", "1", "--vary", "clock_hz=1", "-o", self.out))
        self.assertFalse(self.out.exists())

    # Going on

    def test_finished_points_are_kept_and_half_written_ones_redone(self):
        self.spread(cores="1,2,4")
        before = {p: p.stat().st_mtime_ns for p in self.points()}
        self.assertIn("(0 ran now)", self.spread(cores="1,2,4").stdout)
        self.assertIn("(2 ran now)", self.spread(cores="1,2,4..16").stdout)
        self.assertEqual({p: p.stat().st_mtime_ns for p in before}, before)
        victim = self.points()[0]
        text = victim.read_text()
        for broken in (text[:len(text) // 2], "", "{}", text.replace("gpusim-point-1", "other")):
            victim.write_text(broken)
            self.assertIn("(1 ran now)", self.spread(cores="1,2,4..16").stdout)
        (self.out / "points" / "x.json.AbCdEf").write_text("left over")
        (self.out / "points" / "x.json.12-0.tmp").write_text("left over")
        self.spread(cores="1,2,4..16")
        self.assertFalse((self.out / "points" / "x.json.AbCdEf").exists())
        self.assertFalse((self.out / "points" / "x.json.12-0.tmp").exists())

    def test_killed_at_any_moment(self):
        seed = int(os.environ.get("GPUSIM_SEED", random.randrange(1 << 32)))
        generator = random.Random(seed)
        words = self.command(self.guest, "--entry", "each", "--arg", "@core", "--arg", "@cores",
                             "--arg", "200000", "--cores", "1,2,3,4,5,6,7,8", "-o", self.out,
                             "--quiet", "--run-option=--no-native")
        with self.subTest(replay=f"GPUSIM_SEED={seed}"):
            kept = {}
            for _ in range(60 if os.environ.get("GPUSIM_LONG") else 10):
                with subprocess.Popen(words, cwd=self.folder, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL) as process:
                    time.sleep(generator.uniform(0, 0.35))
                    process.send_signal(generator.choice([signal.SIGKILL, signal.SIGINT,
                                                          signal.SIGTERM]))
                    self.assertIn(process.wait(timeout=60), (-9, -2, -15, 130, 0))
                for path in self.points() if (self.out / "points").is_dir() else []:
                    json.loads(path.read_text())  # whole
                    stamp = path.stat().st_mtime_ns
                    self.assertEqual(kept.setdefault(path, stamp), stamp, f"{path} was made again")
            self.assertEqual(self.runs_left(), [])
            subprocess.run(words, cwd=self.folder, check=True, timeout=120)
            self.assertEqual(len(self.points()), 8)
            for path, stamp in kept.items():
                self.assertEqual(path.stat().st_mtime_ns, stamp)
            self.assertEqual(len(self.results()["curves"][0]["rows"]), 8)

    def runs_left(self):
        """Processes that still work for this study."""
        deadline = time.monotonic() + 10
        while True:
            found = []
            for entry in os.listdir("/proc"):
                if entry.isdigit() and entry != str(os.getpid()):
                    try:
                        with open(f"/proc/{entry}/cmdline", "rb") as file:
                            text = file.read().decode(errors="replace")
                    except OSError:
                        continue
                    if str(self.out) in text and "gpusim" in text:
                        found.append(text)
            if not found or time.monotonic() > deadline:
                return found
            time.sleep(0.05)

    def test_an_interrupted_study_says_how_to_go_on(self):
        with subprocess.Popen(self.command(self.guest, "--entry", "forever", "--cores", "1,2", "-o",
                                           self.out), cwd=self.folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            deadline = time.monotonic() + 60
            while not list((self.out / "running").glob("*")) and time.monotonic() < deadline:
                if (self.out / "study.json").exists():
                    break
                time.sleep(0.02)
            time.sleep(0.3)
            # A second study may not write here at the same time.
            self.assertIn("another", self.refused(self.guest, "--cores", "1", "-o", self.out))
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertIn("0 of 2 points are kept", errors)
        self.assertEqual(self.runs_left(), [])

    # Several processes, without a launcher

    def start(self, *words):
        process = subprocess.Popen(self.command(*words), cwd=self.folder, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def wait_until(self, condition):
        deadline = time.monotonic() + 60
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def long_study(self):
        return [self.guest, "--entry", "each", "--arg", "@core", "--arg", "@cores", "--arg",
                "60000000", "--scaling", "weak", "--cores", "1,2,3,4,5,6", "--jobs", "1",
                "--run-option=--no-native", "-o", self.out]

    def test_another_process_helps(self):
        first = self.start(*self.long_study())
        self.wait_until(lambda: self.points())
        helper = self.start("--join", self.out)
        out, errors = first.communicate(timeout=60)
        self.assertEqual(first.returncode, 0, errors)
        self.assertRegex(out, r"6 points \([1-5] ran now\), 0 failed")
        _, errors = helper.communicate(timeout=60)
        self.assertEqual(helper.returncode, 0, errors)
        self.assertRegex(errors, r"gpusim: [1-5] points ran here; ")
        self.assertEqual(len(self.results()["curves"][0]["rows"]), 6)
        self.assertNotIn("other_machines", self.results())

    def test_a_helper_finishes_what_the_first_left(self):
        first = self.start(*self.long_study())
        self.wait_until(lambda: self.points())
        helper = self.start("--join", self.out)
        self.wait_until(lambda: len(list((self.out / "running").glob("*"))) == 2)
        first.kill()
        out, errors = helper.communicate(timeout=60)
        self.assertEqual(helper.returncode, 0, errors)
        self.assertRegex(out, r"6 points \([1-5] ran now\), 0 failed")
        self.assertEqual(len(self.results()["curves"][0]["rows"]), 6)
        self.assertIn("(0 ran now)", self.sweep(*self.long_study()).stdout)
        for part in ("claims", "workers", "running"):
            self.assertFalse((self.out / part).exists())

    def test_a_point_that_takes_its_processes_with_it(self):
        words = [self.guest, "--entry", "forever", "--cores", "1", "-o", self.out]
        for number in range(3):
            process = self.start(*(words if number == 0 else ["--join", self.out]))
            self.wait_until(lambda: list((self.out / "claims").glob(f"*.{number + 1}")) and
                            list((self.out / "running").glob("*")))
            process.kill()
            process.wait()
            shutil.rmtree(self.out / "running", ignore_errors=True)
        done = self.sweep("--join", self.out, status=1)
        failure, = self.results()["failures"]
        self.assertIn("3 processes ended while they ran this point", failure["message"])
        self.assertIn("1 of 1 points failed", done.stderr)

    def test_points_of_other_machines_are_told(self):
        self.spread(cores="1,2,4")
        point = json.loads(self.points()[0].read_text())
        point["machine"]["processor"] = "Another 9000"
        self.points()[0].write_text(json.dumps(point))
        self.sweep("--report", self.out)
        other, = self.results()["other_machines"]
        self.assertEqual((other["processor"], other["points"]), ("Another 9000", 1))
        self.assertRegex((self.out / "index.html").read_text(),
                         r"and on +Another 9000, memory [0-9.]+ GiB, [^\n]*: 1 of 3 points")

    def test_what_goes_with_join(self):
        self.spread(cores="1")
        for words in ([self.guest, "--join", self.out], ["--join", self.out, "-o", self.folder],
                      ["--join", self.out, "--restart"], ["--join", self.out, "--slurm", "2"],
                      ["--join", self.out, "--jobs", "2"]):
            self.assertRegex(self.refused(*words), r"--join FOLDER takes the study as it was "
                             r"begun: (PROGRAM|--(output|restart|slurm|jobs)) is not")

    def test_another_program_arguments_or_simulator_are_refused(self):
        program = self.folder / "p.elf"
        shutil.copy(self.guest, program)
        words = [program, "--cores", "1", "-o", self.out]
        self.sweep(*words, *SPREAD)
        self.assertIn("other options or arguments", self.refused(*words, *SPREAD[:-1], "101"))
        data = bytearray(program.read_bytes())
        data += b"\0"
        program.write_bytes(data)
        self.assertIn("has changed", self.refused(*words, *SPREAD))
        self.assertEqual(len(self.points()), 1)
        self.sweep(*words, *SPREAD, "--restart")
        study = json.loads((self.out / "study.json").read_text())
        study["simulator"]["sha256"] = "0" * 64
        (self.out / "study.json").write_text(json.dumps(study))
        self.assertIn("another gpusim", self.refused(*words, *SPREAD))
        (self.out / "study.json").write_text("{")
        self.assertIn("study.json", self.refused(*words, *SPREAD))

    # Points that fail

    def test_points_that_fail_do_not_lose_others(self):
        words = [self.guest, "--entry", "few", "--arg", "@core", "--arg", "@cores", "--arg", "4",
                 "--cores", "1,2,4..16", "-o", self.out]
        done = self.sweep(*words, status=1)
        self.assertIn("5 points (5 ran now), 2 failed", done.stdout)
        self.assertEqual(len(done.stderr.splitlines()), 3)
        self.assertRegex(done.stderr, r"few|fault")
        results = self.results()
        self.assertEqual([r["cores"] for r in results["curves"][0]["rows"]], [1, 2, 4])
        self.assertEqual([(f["cores"], f["exit_status"]) for f in results["failures"]],
                         [(8, 139), (16, 139)])
        self.assertRegex(results["failures"][0]["message"],
                         r"\Acore 1: fault: store .*, in .*few\+")
        self.assertIn("(0 ran now), 2 failed", self.sweep(*words, status=1).stdout)
        self.assertIn("(2 ran now), 2 failed", self.sweep(*words, "--retry", status=1).stdout)

    def test_all_points_fail(self):
        text = self.folder / "text.elf"
        text.write_text("not a program")
        done = self.sweep(text, "--cores", "1,2", "-o", self.out, status=1)
        self.assertIn("gpusim: error:", done.stderr)
        self.assertTrue((self.out / "index.html").is_file())

    def test_a_time_limit(self):
        done = self.sweep(self.guest, "--entry", "forever", "--cores", "1,2", "--timeout", "0.3",
                          "-o", self.out, status=1)
        self.assertIn("not finished after 0.3 s", done.stderr)
        self.assertEqual(self.runs_left(), [])

    # Mistakes

    def test_bad_input(self):
        guest, out = self.guest, self.out
        (self.folder / "s.json").write_text('{"programs": [{"program": "p", "core": 1}]}')
        (self.folder / "s.toml").write_text("title = \n")
        (self.folder / "full").mkdir()
        (self.folder / "full" / "thing").write_text("x")
        (self.folder / "file").write_text("x")
        for words, part in (
                ([], "-o FOLDER"), ([guest, "--cores", "1"], "-o FOLDER"),
                (["-o", out], "name a program"),
                ([guest, "-o", out], "--cores"), ([guest, "--cores", "0", "-o", out], "--cores"),
                ([guest, "--cores", "8..2", "-o", out], "downwards"),
                (["none.elf", "--cores", "1", "-o", out], "none.elf"),
                (["full", "--cores", "1", "-o", out], "full"),
                ([guest, "--cores", "1", "--backend", "none", "-o", out], "no backend none"),
                ([guest, "--cores", "1", "--energy", "none", "-o", out], "none"),
                ([guest, "--cores", "1", "--run-option=--stats=x", "-o", out], "--stats"),
                ([guest, "--cores", "1", "--scaling", "big", "-o", out], "scaling"),
                ([guest, "--cores", "1", "-o", "full"], "thing"),
                ([guest, "--cores", "1", "-o", "file"], "file"),
                ([guest, "--cores", "1", "-o", "/proc/x"], "/proc/x"),
                ([guest, "--cores", "1", "-o", out, "--", "{cores"], "{cores"),
                (["s.json", "-o", out], '"core"'), (["s.toml", "-o", out], "line 1"),
                (["s.json", "--entry", "f", "-o", out], '"core"'),
                (["--report", "full"], "study.json"), (["--report", "none"], "none"),
                (["--compare", "full", "none", "-o", out], "full")):
            with self.subTest(words=words):
                self.assertIn(part, self.refused(*words))
        self.assertFalse(out.exists())

    def test_values_of_another_type_are_named(self):
        self.spread(cores="1")
        study, point = self.out / "study.json", self.points()[0]
        for path, keys, value, part in (
                (study, ("study", "threads"), "two", 'study.json.study: "threads" cannot be "two"'),
                (study, ("study", "cases", 0, "cores"), [1, "x"],
                 'study.json.study.cases[0]: "cores" cannot be [1,"x"]'),
                (study, ("machine", "processor"), 3, 'machine: "processor" must be a text'),
                (study, ("schema",), 3, "not a study"),
                (point, ("machine",), 3, "machine: an object is expected"),
                (point, ("machine", "processor"), 3, 'machine: "processor" must be a text'),
                (point, ("claim",), -1, '"claim" cannot be -1'),
                (point, ("cores",), -1, '"cores" cannot be -1'),
                (point, ("stats", "seconds"), "x", 'stats: "seconds" cannot be "x"'),
                (study, ("study", "cases", 0, "cores"), [1, -2], '"cores" cannot be [1,-2]'),
                (study, ("study", "cases"), 3, 'study.json.study: "cases" cannot be 3'),
                (point, ("stats", "functions"), 3, 'stats: "functions" cannot be 3'),
                (point, ("stats", "lines"), [[]], "stats.lines[0]: an object is expected"),
                (point, ("stats", "bins", 0, "least"), -1, 'stats.bins[0]: "least" cannot be -1'),
                (point, ("stats", "bins", 0, "classes"), {"control_flow": "x"},
                 'stats.bins[0].classes: "control_flow" cannot be "x"'),
                (point, ("stats", "longest_cores", 0), {"control_flow": -1},
                 'stats.longest_cores[0]: "control_flow" cannot be -1')):
            whole = path.read_text()
            json_value = json.loads(whole)
            place = json_value
            for key in keys[:-1]:
                place = place[key]
            place[keys[-1]] = value
            path.write_text(json.dumps(json_value))
            with self.subTest(keys=keys):
                message = self.refused("--report", self.out)
                self.assertIn(part, message)
                self.assertNotIn("json.exception", message)
            path.write_text(whole)

    def test_a_comparison_leads_with_what_changed(self):
        call = ["--entry", "spread", "--arg", "@core", "--arg", "@cores", "--arg"]
        for folder, more in (("one", "100"), ("same", "100"), ("more", "200")):
            self.sweep(self.guest, "--name", "spread", *call, "4096", "--arg", more, "--cores",
                       "1,4", "--energy", "et-soc1", "-o", folder)
        self.sweep("--compare", "one", "same", "-o", "none")
        self.assertIn("Nothing changed", (self.folder / "none/compare.html").read_text())
        self.sweep("--compare", "one", "more", "-o", "some")
        page = (self.folder / "some/compare.html").read_text()
        self.assertRegex(page, r'class="answer">spread[^:]*: \+[0-9.e+]+ % [a-z ]+ on [14] core')
        rows = re.search(r'"title":"Greatest change of each quantity".*?"rows":(\[\[.*?\]\])',
                         page, re.S)
        changes = [row[-1] for row in json.loads(rows[1])]
        self.assertEqual(len(changes), 3)  # the busiest core, all cores, energy
        self.assertEqual(changes, sorted(changes, key=abs, reverse=True))
        whole = [[int(r["guest_instructions"]) for r in csv.DictReader(
            (self.folder / folder / "results.csv").read_text().splitlines())]
            for folder in ("one", "more")]
        most = max((b / a - 1 for a, b in zip(*whole)), key=abs)
        self.assertTrue(any(abs(c - most) < 1e-3 * abs(most) for c in changes), (changes, most))

    def test_a_table_for_papers(self):
        self.sweep(self.guest, "--name", "a_b & 100 %", *SPREAD, "--cores", "1,2,1024", "--energy",
                   "et-soc1", "-o", self.out)
        text = (self.out / "results.tex").read_text()
        self.assertIn(r"a\_b \& 100 \%", text)
        columns = len(re.search(r"begin\{tabular\}\{([lr]+)\}", text)[1])
        rows = [r for r in text.splitlines() if r.endswith(r"\\")]
        self.assertEqual(len(rows), 4)
        for row in rows:
            self.assertEqual(len(re.findall(r"(?<!\\)&", row)), columns - 1, row)
        self.assertIn("1{,}024", rows[-1])
        self.assertEqual(text.count("{"), text.count("}"))

    def test_charts_have_the_colours_of_pages(self):
        root = HERE.parents[2] / "device_sim" / "base"
        script = re.search(r"series: (\[[^\]]+\])", (root / "assets/page.js").read_text())[1]
        header = re.search(r"kChartColours\[\] = \{([^}]+)\}", (root / "svg.h").read_text())[1]
        self.assertEqual(re.findall("#[0-9a-f]{6}", script), re.findall("#[0-9a-f]{6}", header))

    def test_a_report_with_other_targets(self):
        self.spread(cores="1,2")
        self.assertNotIn("energy", self.results()["curves"][0]["rows"][0])
        self.sweep("--report", self.out, "--energy", "fermi")
        self.assertEqual(self.results()["curves"][0]["rows"][0]["energy"][0]["target"], "fermi")

    def test_commands_can_be_repeated(self):
        self.spread(cores="2")
        html = (self.out / "index.html").read_text()
        command = re.search(r"^(?:<pre>)?gpusim (run .*)$", html, re.MULTILINE).group(1)
        command = command.replace("&amp;", "&").replace("</pre>", "")
        subprocess.run(f"{self.gpusim} {command}", shell=True, check=True, cwd=self.folder)
        stats = json.loads((self.folder / "stats.json").read_text())
        self.assertEqual(stats["classes"], self.results()["curves"][0]["rows"][0]["classes"])


if __name__ == "__main__":
    main(Sweep)
