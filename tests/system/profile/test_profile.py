#!/usr/bin/env python3
"""`gpusim run` with --profile, --timeline and --power-trace (docs/profile.md).

  test_profile.py GPUSIM BUILD_FOLDER EXAMPLES_FOLDER [UNITTEST ARGUMENT]...

GPUSIM_TEST_ISA says for which guest ISA.
"""

import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "differential" / "qemu"))
import harness  # noqa: E402

ISA = os.environ.get("GPUSIM_TEST_ISA", "aarch64")
CROSS = f"/usr/bin/{ISA}-linux-gnu-gcc"
BARE = ["-static", "-nostdlib", "-ffreestanding", "-fno-pie", "-no-pie", "-fno-stack-protector"]
LISTS = ("functions", "inlined", "lines", "stacks")
SIGNALS = r"""
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>
static volatile int faults;
static void handler(int s, siginfo_t* info, void* context) {
  ++faults;
#ifdef __riscv
  const unsigned long pc = ((ucontext_t*)context)->uc_mcontext.__gregs[REG_PC];
  ((ucontext_t*)context)->uc_mcontext.__gregs[REG_PC] += (*(unsigned short*)pc & 3) == 3 ? 4 : 2;
#else
  ((ucontext_t*)context)->uc_mcontext.pc += 4;
#endif
}
int main(void) {
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, 0);
  for (int i = 0; i < 20; ++i) *(volatile int*)8 = i;
  return faults != 20;
}
"""


class Profile(unittest.TestCase):
    gpusim: pathlib.Path
    build: pathlib.Path
    examples: pathlib.Path

    @classmethod
    def setUpClass(cls):
        cls.build.mkdir(parents=True, exist_ok=True)
        (cls.build / "signals.c").write_text(SIGNALS)
        entries = "-Wl,--entry=forked,-u,inlining,-u,waiting,-u,faulting,-u,walking"
        harness.build_all(
            {"guests.elf": [CROSS, "-O1", "-g", *BARE, entries, HERE / "guests.c"],
             "plain.elf": [CROSS, "-O1", *BARE, entries, HERE / "guests.c"],
             "signals.elf": [CROSS, "-O1", "-g", "-static", cls.build / "signals.c"],
             "stacks.elf": [CROSS, "-O2", "-g", "-static", HERE / "stacks.c"],
             "exceptions.elf": [CROSS.replace("gcc", "g++"), "-O2", "-g", "-static",
                                HERE / "exceptions.cpp"]},
            harness.compiler_version(CROSS), cls.build, os.cpu_count())
        cls.guests, cls.plain, cls.signals, cls.stacks, cls.exceptions = (
            cls.build / f"{name}.elf"
            for name in ("guests", "plain", "signals", "stacks", "exceptions"))
        cls.line_numbers = {}
        for number, line in enumerate((HERE / "guests.c").read_text().splitlines(), 1):
            mark = re.search(r"// (line A|odd|even)$", line)
            if mark:
                cls.line_numbers[mark.group(1)] = number

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def run_gpusim(self, *words, status=0):
        command = [str(self.gpusim), "run", *map(str, words)]
        done = subprocess.run(command, capture_output=True, timeout=120, check=False,
                              cwd=self.folder)
        stderr = done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, status, f"{command}\n{stderr[:3000]}")
        return stderr

    def refused(self, *words):
        message = self.run_gpusim(*words, status=2)
        self.assertRegex(message, r"\Agpusim: error: [^\n]+\n\Z")
        self.assertEqual(list(self.folder.iterdir()), [])
        return message

    def profile(self, *words, status=0):
        """Profile and statistics of the same run, after checking that they agree exactly."""
        self.run_gpusim(words[0], "--quiet", "--profile=p.json,p.html,p.folded", "--stats",
                        "s.json", *words[1:], status=status)
        profile, stats = (json.loads((self.folder / f"{name}.json").read_text()) for name in "ps")
        classes = {name: count for name, count in stats["classes"].items() if count}
        self.assertEqual(profile["total"]["classes"], classes)
        for key in LISTS:
            sums = {}
            for part in profile[key]:
                for name, count in part["classes"].items():
                    sums[name] = sums.get(name, 0) + count
            self.assertEqual(sums, classes, key)
            self.assertEqual(sum(part["waiting_instructions"] for part in profile[key]),
                             stats["waiting"]["instructions"], key)
            if stats["divergence"]:
                self.assertEqual(sum(part["diverged_lanes"] for part in profile[key]),
                                 stats["divergence"]["diverged_lanes"], key)
                divergence = stats["divergence"]
                self.assertEqual(divergence["lane_slots"],
                                 sum(divergence[f"{name}_lanes"]
                                     for name in ("active", "diverged", "asleep", "idle")))
                self.assertLessEqual(divergence["active_lanes"], stats["guest_instructions"])
        folded = (self.folder / "p.folded").read_text().splitlines()
        self.assertEqual(sum(int(line.rpartition(" ")[2]) for line in folded),
                         stats["guest_instructions"])
        self.assertEqual(len({line.rpartition(" ")[0] for line in folded}), len(folded))
        return profile, stats

    def entry(self, name, *options, cores=64, status=0, program=None):
        return self.profile(program or self.guests, "--entry", name, "--arg", "@core", "--cores",
                            cores, *options, status=status)

    # --- profiles

    def test_sums_equal_the_tallies_of_all_examples(self):
        programs = sorted(p for p in self.examples.glob("*.elf")
                          if not p.name.startswith(("bench_", "long_")))
        if not programs:
            self.skipTest("no examples were built")
        for program in programs:
            with self.subTest(program=program.name):
                self.profile(program, "--cores", 64, "--start", "all")

    def test_sums_hold_where_cores_fault(self):
        for backend in ("simd", "scalar"):
            with self.subTest(backend=backend):
                profile, _ = self.entry("faulting", "--backend", backend, status=139)
                self.assertIn("faulting", [f["function"] for f in profile["functions"]])

    def test_sums_hold_with_signal_handlers(self):
        profile, _ = self.profile(self.signals)
        functions = {f["function"]: f["guest_instructions"] for f in profile["functions"]}
        # The code that handlers return to is the host's: no function has it.
        self.assertEqual(functions[""], 2 * 20)
        self.assertGreater(functions["handler"], 20)

    def test_divergence_is_found_where_it_is(self):
        profile, stats = self.entry("forked", cores=64)
        self.assertGreater(stats["divergence"]["lost_share"], 0.2)
        lines = {line["line"]: line for line in profile["lines"]}
        lost = [lines[self.line_numbers[name]] for name in ("odd", "even")]
        for line in lost:
            self.assertGreater(line["guest_instructions"], 32 * 1000)
        # While one half went round, the other waited for its turn.
        self.assertGreater(sum(line["diverged_lanes"] for line in lost), 32 * 2000)
        _, alone = self.entry("forked", "--backend", "scalar", cores=64)
        self.assertEqual(alone["divergence"]["diverged_lanes"], 0)
        self.assertEqual(alone["guest_instructions"], stats["guest_instructions"])

    def test_a_core_that_yields_waits(self):
        profile, stats = self.entry("waiting", cores=8)
        waiting = stats["waiting"]["instructions"]
        self.assertGreater(waiting, 0)
        self.assertLess(waiting, stats["guest_instructions"] - 200000)
        function = next(f for f in profile["functions"] if f["function"] == "waiting")
        self.assertEqual(function["waiting_instructions"], waiting)
        _, forked = self.entry("forked", cores=8)
        self.assertEqual(forked["waiting"], {"instructions": 0, "asleep_lanes": 0,
                                             "lost_share": 0.0})

    def test_inlined_functions_have_their_share(self):
        profile, _ = self.entry("inlining", cores=3)
        self.assertEqual({f["function"] for f in profile["functions"]}, {"inlining", "outer"})
        inlined = {f["function"]: f["guest_instructions"] for f in profile["inlined"]}
        self.assertGreater(inlined["inlined_square"], inlined["outer"])
        stacks = [tuple(part["stack"]) for part in profile["stacks"]]
        self.assertIn(("inlining", "outer", "inlined_twice", "inlined_square"), stacks)
        hottest = profile["lines"][0]
        self.assertEqual(pathlib.Path(hottest["file"]).name, "guests.c")
        self.assertEqual(hottest["line"], self.line_numbers["line A"])
        page = (self.folder / "p.html").read_text()
        self.assertIn("sum += x ^ i;", page)
        self.assertIn("\ninlining;outer;inlined_twice;inlined_square ",
                      "\n" + (self.folder / "p.folded").read_text())
        profile, _ = self.entry("inlining", "--call-stacks", "off", cores=3)
        self.assertIn(["outer", "inlined_twice", "inlined_square"],
                      [part["stack"] for part in profile["stacks"]])

    def test_lines_agree_with_addr2line(self):
        """Functions and lines of each address, by a program that we did not write."""
        tool = f"/usr/bin/{ISA}-linux-gnu-addr2line"
        if not os.path.exists(tool):
            self.skipTest("no addr2line for this ISA")
        profile, _ = self.entry("inlining", "--call-stacks", "off", cores=1)
        symbols = subprocess.run([f"/usr/bin/{ISA}-linux-gnu-nm", "-S", self.guests], check=True,
                                 capture_output=True, text=True).stdout
        begin, size = next((int(w[0], 16), int(w[1], 16))
                           for w in map(str.split, symbols.splitlines())
                           if w[-1] == "outer")
        listed = subprocess.run([tool, "-f", "-i", "-a", "-e", self.guests,
                                 *(hex(begin + i) for i in range(0, size, 2))],
                                check=True, capture_output=True, text=True).stdout
        chains = set()
        for block in re.split(r"^0x.*\n", listed, flags=re.M)[1:]:
            chains.add(tuple(reversed(block.splitlines()[0::2])))
        ours = {tuple(part["stack"]) for part in profile["stacks"] if part["stack"][0] == "outer"}
        self.assertTrue(ours)
        self.assertLessEqual(ours, chains)

    def test_a_program_without_dwarf_has_functions(self):
        profile, _ = self.entry("forked", program=self.plain)
        self.assertEqual([f["function"] for f in profile["functions"]], ["forked"])
        self.assertEqual([(line["file"], line["line"]) for line in profile["lines"]], [("", 0)])
        self.assertIn("has no DWARF", (self.folder / "p.html").read_text())
        table = self.run_gpusim(self.plain, "--entry", "forked", "--arg", "1", "--quiet",
                                "--profile")
        self.assertIn("no lines: the program has no DWARF", table)

    def test_the_table_shows_lines_and_cycles_of_a_target(self):
        table = self.run_gpusim(self.guests, "--entry", "forked", "--arg", "@core", "--cores", "64",
                                "--quiet", "--profile", "--timing", "cortex-a7")
        self.assertIn("(cortex-a7)", table)
        self.assertRegex(table, r"\d+ +[\d.]+ % +\d+ +[\d.]+ % +[\d.]+ %  forked\n")
        self.assertIn(f"guests.c:{self.line_numbers['odd']}", table)
        profile, stats = self.entry("forked", "--timing", "cortex-a7", cores=64)
        cycles = profile["cycle_table"]["cycles"]
        self.assertAlmostEqual(profile["total"]["cycles"],
                               sum(n * cycles[name] for name, n in stats["classes"].items()))

    # --- call stacks

    def folded(self, *words):
        """Stacks of a run, (function, ...) -> instructions, after checking that they add up."""
        self.profile(*words)
        stacks = {}
        for line in (self.folder / "p.folded").read_text().splitlines():
            stack, _, count = line.rpartition(" ")
            stacks[tuple(stack.split(";"))] = int(count)
        return stacks

    @staticmethod
    def below(stacks, *functions):
        """What was executed in the last of these functions, itself, called so from anywhere."""
        return sum(n for stack, n in stacks.items() if stack[-len(functions):] == functions)

    def check_work(self, stacks, expected, calibration):
        """work(n) executes fixed + n * step instructions."""
        step, fixed = calibration
        for functions, calls in expected.items():
            self.assertEqual(self.below(stacks, *functions, "work"),
                             sum(fixed + n * step for n in calls), functions)

    def calibrate(self, stacks):
        short, long = (self.below(stacks, "main", name, "work") for name in ("first", "second"))
        step, rest = divmod(long - short, 2000)
        self.assertEqual(rest, 0)
        self.assertIn(step, range(2, 6))
        return step, short - 1000 * step

    EXPECTED = {
        ("main", "first"): [1000],
        ("main", "second"): [3000],
        **{("main", *["recursive"] * depth): [100] for depth in range(1, 6)},
        ("main", "even"): [10],
        ("main", "even", "even"): [10],
        ("main", "even", "even", "odd"): [20],
        ("main", "even", "even", "odd", "even"): [10],
        ("main", "tail_caller"): [40],
        ("main", "tail_target"): [500] * 2,  # in the place of who called it
        ("main", "jumper"): [700] * 3,
        ("main", "jumper", "through", "through", "thrower"): [200] * 3,
        ("main", "after"): [50] * 3,
        ("main", "outside", "inlined"): [60],
        ("main", "signalled"): [70],
        ("(signal)", "handler"): [300],
        ("main", "escaper"): [80] * 2,
        ("(signal)", "escapes"): [400] * 2,
        ("main", "escaper", "after"): [50] * 2,
    }

    def test_stacks_of_all_kinds_of_calls(self):
        before = None
        for backend in ("scalar", "simd"):
            for options in ((), ("--slice", "50"), ("--no-native",)):
                with self.subTest(backend=backend, options=options):
                    stacks = self.folded(self.stacks, "--backend", backend, *options)
                    calibration = self.calibrate(stacks)
                    self.check_work(stacks, self.EXPECTED, calibration)
                    # All of work() was called by one of these.
                    self.assertEqual(sum(n for stack, n in stacks.items() if stack[-1] == "work"),
                                     sum(self.below(stacks, *f, "work") for f in self.EXPECTED))
                    for stack in stacks:
                        if stack[-1] in ("handler", "escapes", "compare"):
                            self.assertIn("main", stack)
                    self.assertTrue(any("sorter" in stack and stack[-1] == "compare"
                                        for stack in stacks))
                    self.assertEqual(before or stacks, stacks)
                    before = stacks

    def test_stacks_of_processes_in_lockstep(self):
        alone = self.folded(self.stacks)
        for backend in ("simd", "scalar"):
            with self.subTest(backend=backend):
                many = self.folded(self.stacks, "--backend", backend, "--memory", "private",
                                   "--cores", 70)
                self.assertEqual(many, {stack: 70 * n for stack, n in alone.items()})

    def test_stacks_of_threads(self):
        for backend in ("simd", "scalar"):
            with self.subTest(backend=backend):
                stacks = self.folded(self.stacks, "--backend", backend, "--cores", 4, "--",
                                     "threads")
                calibration = self.calibrate(stacks)
                self.check_work(stacks, {**self.EXPECTED, ("worker", "first"): [1000] * 3,
                                         ("worker", "second"): [3000]}, calibration)
                self.assertFalse([stack for stack in stacks if {"worker", "main"} <= set(stack)])

    def test_stacks_of_each_core(self):
        sums = {}
        self.run_gpusim(self.stacks, "--quiet", "--profile=p.folded,p.json", "--per-core",
                        "--cores", "4", "--backend", "simd", "--", "threads")
        for line in (self.folder / "p.folded").read_text().splitlines():
            stack, _, count = line.rpartition(" ")
            core, *functions = stack.split(";")
            sums.setdefault(core, {})[tuple(functions)] = int(count)
        self.assertEqual(set(sums), {f"core {i}" for i in range(4)})
        calibration = self.calibrate(sums["core 0"])
        self.check_work(sums["core 0"], self.EXPECTED, calibration)
        second = [bool(self.below(sums[f"core {i}"], "second", "work")) for i in range(1, 4)]
        self.assertEqual(second, [False, True, False])
        for i in range(1, 4):
            self.check_work(sums[f"core {i}"], {("worker", "first"): [1000]}, calibration)
        profile = json.loads((self.folder / "p.json").read_text())
        self.assertEqual({part["core"] for part in profile["stacks"]}, set(range(4)))
        self.assertEqual(sum(part["guest_instructions"] for part in profile["stacks"]),
                         profile["total"]["guest_instructions"])

    def test_stacks_that_exceptions_unwind(self):
        stacks = self.folded(self.exceptions)
        fixed = self.below(stacks, "main", "calibrates", "work")
        caught = self.below(stacks, "main", "catches", "work")
        thrown = [self.below(stacks, "main", "catches", *["throws"] * depth, "work")
                  for depth in range(1, 4)]
        self.assertEqual(thrown[0], thrown[1])
        self.assertEqual(thrown[0], thrown[2])
        # 700, 100 and 1000 rounds.
        step = (caught - thrown[0]) // (3 * 600)
        self.assertEqual(caught - thrown[0], 3 * 600 * step)
        self.assertEqual(fixed, thrown[0] // 3 + 900 * step)

    def test_deep_and_many_stacks_have_an_end(self):
        stacks = self.folded(self.stacks, "--", "deep")
        self.assertLess(max(map(len, stacks)), 140)
        deeper = [stack for stack in stacks if "(deeper calls)" in stack]
        self.assertTrue(deeper)
        self.assertGreater(self.below(stacks, "(deeper calls)", "recursive"), 800 * 3)
        for option in ("--profile=p.html", "--profile=p.json"):
            self.run_gpusim(self.stacks, "--quiet", option, "--call-stacks", "on", "--", "deep")

    def test_programs_that_switch_stacks_add_up(self):
        stacks = self.folded(self.stacks, "--", "switch")
        self.assertTrue(any(stack[-1] == "work" and "coroutine" in stack for stack in stacks))

    @staticmethod
    def read_callgrind(text):
        """Of callgrind's format: {function: self}, {(caller, line, callee): (count, inclusive)}."""
        names, own, calls, here = {}, {}, {}, {}

        def name_of(kind, value):
            found = re.fullmatch(r"\((\d+)\)(?: (.*))?", value)
            if not found:
                return value
            if found[2] is not None:
                names[kind, found[1]] = found[2]
            return names[kind, found[1]]

        line = count = 0
        for row in text.splitlines():
            word, is_setting, value = row.partition("=")
            if is_setting and word in ("fn", "cfn"):
                # In a recursion Valgrind has "name'2", too.
                here[word] = re.sub(r"'\d+$", "", name_of("fn", value))
            elif word == "calls":
                count = int(value.split()[0])
            elif re.match(r"[-+*\d]", row):
                at, cost, *_ = row.split()
                line = (line if at == "*" else line + int(at) if at[0] in "+-" else int(at))
                if count:
                    key = (here["fn"], line, here["cfn"])
                    before = calls.get(key, (0, 0))
                    calls[key] = (before[0] + count, before[1] + int(cost))
                else:
                    own[here["fn"]] = own.get(here["fn"], 0) + int(cost)
                count = 0
        return own, calls

    def callgrind(self, *words):
        """Calls of a run, after checking that inclusive costs are those of its stacks."""
        stacks = self.folded(*words)
        self.run_gpusim(words[0], "--quiet", "--profile=callgrind.out.p", *words[1:])
        path = self.folder / "callgrind.out.p"
        own, calls = self.read_callgrind(path.read_text())
        self.assertEqual(sum(own.values()), sum(stacks.values()))
        wanted, inclusive = {"(start)": sum(stacks.values())}, {}
        for stack, cost in stacks.items():
            for function in set(stack):
                name = "???" if function == "(unknown)" else function
                wanted[name] = wanted.get(name, 0) + cost
        for (caller, _, callee), (_, cost) in calls.items():
            inclusive[callee] = inclusive.get(callee, 0) + cost
            if caller == "(start)":
                inclusive[caller] = inclusive.get(caller, 0) + cost
        self.assertEqual(set(own) - set(inclusive), set())
        # Functions that were inlined are in stacks only.
        self.assertEqual(inclusive, {name: wanted[name] for name in inclusive})
        if annotate := shutil.which("callgrind_annotate"):
            done = subprocess.run([annotate, "--inclusive=yes", "--threshold=100", "--auto=no",
                                   path], capture_output=True, text=True, check=True, timeout=60,
                                  cwd="/")
            self.assertEqual(done.stderr, "")
            shown = {}
            for cost, name in re.findall(r"^ *([\d,]+) .* \S*?:(\S+)(?: \[.*\])?$",
                                         done.stdout.split("file:function", 1)[1], re.M):
                shown[name] = shown.get(name, 0) + int(cost.replace(",", ""))
            self.assertGreater(len(shown), 20)
            self.assertEqual(shown, {name: inclusive[name] for name in shown})
        return calls

    def test_calls_in_callgrinds_format(self):
        for options in (("--backend", "simd"), ("--backend", "scalar", "--slice", "50"),
                        ("--backend", "simd", "--memory", "private", "--cores", "70")):
            with self.subTest(options=options):
                cores = 70 if "private" in options else 1
                calls = self.callgrind(self.stacks, *options)
                counts = {}
                for (caller, _, callee), (count, _) in calls.items():
                    counts[caller, callee] = counts.get((caller, callee), 0) + count
                for pair, count in {
                        ("(start)", "_start"): 1, ("main", "first"): 1, ("first", "work"): 1,
                        ("main", "after"): 3, ("main", "recursive"): 1,
                        ("recursive", "recursive"): 4, ("recursive", "work"): 5,
                        ("even", "even"): 1, ("even", "odd"): 1, ("odd", "even"): 1,
                        ("main", "tail_caller"): 1, ("main", "tail_target"): 2,
                        ("jumper", "through"): 3, ("through", "thrower"): 3,
                        ("(signal)", "handler"): 1, ("(signal)", "escapes"): 2}.items():
                    self.assertEqual(counts.get(pair), cores * count, pair)
                lines = [line for caller, line, callee in sorted(calls)
                         if (caller, callee) == ("main", "after")]
                text = (HERE / "stacks.c").read_text().splitlines()
                self.assertEqual([text[line - 1].strip() for line in lines], ["after();"] * 3)
        self.callgrind(self.stacks, "--", "deep")
        self.callgrind(self.stacks, "--cores", 4, "--", "threads")
        self.callgrind(self.stacks, "--cores", 4, "--per-core", "--", "threads")
        self.callgrind(self.exceptions)
        # Without call stacks there are no calls.
        self.run_gpusim(self.stacks, "--quiet", "--profile=q.callgrind", "--call-stacks", "off")
        self.assertNotIn("calls=", (self.folder / "q.callgrind").read_text())

    def test_calls_are_those_that_valgrind_counts(self):
        """The same program for this machine: functions call each other from the same lines."""
        valgrind = shutil.which("valgrind")
        if not valgrind or not shutil.which("gcc"):
            self.skipTest("valgrind or gcc is missing")
        native, out = self.folder / "native", self.folder / "callgrind.out.native"
        subprocess.run(["gcc", "-O2", "-g", HERE / "stacks.c", "-o", native], check=True)
        done = subprocess.run([valgrind, "--tool=callgrind", f"--callgrind-out-file={out}", native],
                              capture_output=True, text=True, timeout=120, check=False)
        if not out.exists():
            self.skipTest(f"valgrind does not work here: {done.stderr[-300:]}")
        source = (HERE / "stacks.c").read_text()
        own = {"compare", *re.findall(r"^APART void\*? (\w+)\(", source, re.M)}
        # Tail calls are shown otherwise, and Valgrind loses its way in jumps out of handlers.
        own -= {"tail_target", "tail_caller", "pointer_tail_caller", "escapes"}
        of_main = range(*(source[:source.index(text)].count("\n") + 1
                          for text in ("  first();\n  second", "  escaper(low_stack")))

        def of_program(calls):
            return {key: count for key, (count, _) in calls.items() if key[2] in own and
                    (key[1] in of_main if key[0] == "main" else key[0] in own)}
        theirs = of_program(self.read_callgrind(out.read_text())[1])
        self.assertGreater(len(theirs), 20)
        self.assertEqual(of_program(self.callgrind(self.stacks)), theirs)

    def test_the_page_has_a_flame_graph(self):
        self.run_gpusim(self.stacks, "--quiet", "--profile=p.html")
        page = (self.folder / "p.html").read_text()
        self.assertIn("<h2", page)
        tips = re.findall(r'<g class="flame"><title>([^<]*)</title>', page)
        self.assertRegex(tips[0], r"^all: 100\.00 % \([\d,]+ cycles, [\d,]+ instructions\)$")
        shares = {}
        for tip in tips:
            name, share = re.match(r"(.*): ([\d.]+) % ", tip).groups()
            shares[name] = shares.get(name, 0) + float(share)
        self.assertGreater(shares["main"], 80)
        self.assertGreater(shares["second"], shares["first"])
        self.assertIn("(signal)", shares)
        self.run_gpusim(self.stacks, "--quiet", "--profile=p.html", "--call-stacks", "off")
        page = (self.folder / "p.html").read_text()
        self.assertNotIn('class="flame"', page)
        self.assertIn("with --call-stacks on", page)
        self.run_gpusim(self.guests, "--entry", "inlining", "--arg", "@core", "--cores", 20000,
                        "--quiet", "--profile=p.html")
        self.assertIn("with --call-stacks on", (self.folder / "p.html").read_text())

    def test_call_stacks_with_other_observers(self):
        caches = HERE.parents[2] / "examples" / "caches" / "l1_l2.json"
        expected = self.folded(self.stacks)
        self.assertEqual(self.folded(self.stacks, "--caches", caches), expected)
        self.run_gpusim(self.stacks, "--quiet", "--profile=p.html", "--gdb", "x", "--call-stacks",
                        "on", status=2)
        self.run_gpusim(self.stacks, "--quiet", "--profile=p.folded", "--check", "races", "--cores",
                        "2")

    # --- timelines and power

    def test_a_timeline_covers_time_without_gaps(self):
        for backend in ("simd", "scalar", "auto"):
            with self.subTest(backend=backend):
                self.run_gpusim(self.guests, "--entry", "waiting", "--arg", "@core", "--cores",
                                "200",
                                "--quiet", "--backend", backend, "--timeline", "t.json")
                trace = json.loads((self.folder / "t.json").read_text())
                rows = {}
                for event in trace["traceEvents"]:
                    self.assertIn(event["ph"], "MXC")
                    if event["ph"] == "X":
                        self.assertIn(event["name"], ("running", "diverged", "waiting", "ended"))
                        self.assertAlmostEqual(sum(event["args"].values()), 100, delta=2)
                        rows.setdefault(event["tid"], []).append((event["ts"], event["dur"]))
                self.assertEqual(len({max(t + d for t, d in row) for row in rows.values()}), 1)
                for row in rows.values():
                    now = 0
                    for start, duration in row:
                        self.assertAlmostEqual(start, now, places=6)
                        now = start + duration

    def test_joules_of_slices_add_up_to_the_estimate(self):
        targets = ("et-soc1", "cortex-a7", "fermi")
        self.run_gpusim(self.guests, "--entry", "forked", "--arg", "@core", "--cores", "130",
                        "--quiet", "--slice", "100", "--energy", ",".join(targets), "--power-trace",
                        "w.csv", "--timeline", "t.json", "--stats", "s.json")
        with open(self.folder / "w.csv") as file:
            rows = list(csv.DictReader(file))
        stats = json.loads((self.folder / "s.json").read_text())
        for target in stats["energy"]:
            mine = [row for row in rows if row["target"] == target["target"]]
            self.assertGreater(len(mine), 10)
            joules = sum(float(row["dynamic_J"]) for row in mine)
            self.assertAlmostEqual(joules / target["dynamic"]["value_J"], 1, places=9)
            now = 0
            for row in mine:
                self.assertAlmostEqual(float(row["start_s"]), now, places=12)
                now = float(row["end_s"])
                duration = now - float(row["start_s"])
                watts = sum(float(v) for k, v in row.items()
                            if k.endswith("_W") and k not in ("dynamic_W", "idle_W", "total_W"))
                self.assertAlmostEqual(watts / float(row["dynamic_W"]), 1, places=4)
                self.assertAlmostEqual(float(row["dynamic_W"]) * duration / float(row["dynamic_J"]),
                                       1,
                                       places=4)
        trace = json.loads((self.folder / "t.json").read_text())
        counters = {e["name"] for e in trace["traceEvents"] if e["ph"] == "C" and e["pid"] == 2}
        self.assertEqual(counters, {f"W, {name}" for name in targets})
        self.run_gpusim(self.guests, "--entry", "forked", "--arg", "@core", "--quiet", "--energy",
                        "et-soc1", "--power-trace", "w.html")
        page = (self.folder / "w.html").read_text()
        # The answer in one number format; idle power below the classes.
        self.assertRegex(page, r'class="answer">et-soc1: [0-9.]+ [mµnp]?J above idle in ')
        self.assertIn('"name":"idle","style":"idle"', page)

    def test_sums_hold_with_caches(self):
        caches = HERE.parents[2] / "examples" / "caches" / "l1_l2.json"
        profile, stats = self.entry("walking", "--caches", caches, "--slice", "200", "--energy",
                                    "et-soc1", "--power-trace", "w.csv", "--timing", "et-soc1",
                                    cores=16)
        self.assertGreater(stats["classes"]["on_chip_memory"], 0)
        sums = {name: 0 for name in stats["classes"]}
        for part in stats["slices"]:
            for name, count in part["classes"].items():
                sums[name] += count
        self.assertEqual(sums, stats["classes"])
        with open(self.folder / "w.csv") as file:
            joules = sum(float(row["dynamic_J"]) for row in csv.DictReader(file))
        self.assertAlmostEqual(joules / stats["energy"][0]["dynamic"]["value_J"], 1, places=9)
        cycles = profile["cycle_table"]["cycles"]
        self.assertAlmostEqual(profile["total"]["cycles"],
                               sum(n * cycles[name] for name, n in stats["classes"].items()))

    def test_components_of_a_gpu_over_time(self):
        """Slices in the statistics, as `energy predict` reads them: AccelWattch's components."""
        self.run_gpusim(self.guests, "--entry", "forked", "--arg", "@core", "--cores", "130",
                        "--quiet", "--slice", "100", "--timeline", "t.json", "--stats", "s.json")
        stats = json.loads((self.folder / "s.json").read_text())
        self.assertGreater(len(stats["slices"]), 10)
        sums = {name: 0 for name in stats["classes"]}
        for part in stats["slices"]:
            for name, count in part["classes"].items():
                sums[name] += count
        self.assertEqual(sums, stats["classes"])
        whole = {key: value for key, value in stats.items() if key != "slices"}
        (self.folder / "w.json").write_text(json.dumps(whole))
        joules = {}
        for name in "sw":
            subprocess.run([self.gpusim, "energy", "predict", f"{name}.json", "--json",
                            f"{name}.out", "--sheet", f"{name}.csv",
                            *(["--perfetto", "p.json", "--svg", "p.svg"] if name == "s" else [])],
                           check=True, capture_output=True, cwd=self.folder, timeout=60)
            with open(self.folder / f"{name}.csv") as file:
                rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
            times = {"s": [p["seconds"] for p in stats["slices"]], "w": [1.0]}[name]
            shares = [t / sum(times) for t in times]
            self.assertEqual(len(rows), len(shares))
            # Pipelines are used to a limit, and the mix of a slice decides its static power.
            for column in ("INTP", "RFP", "ICP", "CONSTP"):
                if column in rows[0]:
                    joules.setdefault(column, []).append(
                        sum(float(row[column]) * share for row, share in zip(rows, shares)))
        self.assertTrue(joules)
        for column, (slices, run) in joules.items():
            self.assertAlmostEqual(slices, run, delta=1e-3 * abs(run) + 1e-9, msg=column)
        trace = json.loads((self.folder / "p.json").read_text())
        self.assertGreater(sum(e["ph"] == "C" for e in trace["traceEvents"]), len(stats["slices"]))
        broken = dict(stats, slices=stats["slices"][1:])
        (self.folder / "b.json").write_text(json.dumps(broken))
        done = subprocess.run([self.gpusim, "energy", "predict", "b.json"], capture_output=True,
                              text=True, cwd=self.folder, timeout=60, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("do not add up", done.stderr)

    def test_observing_changes_nothing(self):
        _, stats = self.entry("forked", "--threads", "1", "--timeline", "t.json", "--call-stacks",
                              "off", cores=300)
        self.run_gpusim(self.guests, "--entry", "forked", "--arg", "@core", "--cores", "300",
                        "--quiet",
                        "--threads", "1", "--stats", "plain.json")
        plain = json.loads((self.folder / "plain.json").read_text())
        for key in ("classes", "guest_instructions", "micro_ops", "divergence", "functions"):
            self.assertEqual(stats[key], plain[key])
        # Following calls takes micro-ops, but executes the same.
        _, stats = self.entry("forked", "--threads", "1", cores=300)
        for key in ("classes", "guest_instructions", "functions"):
            self.assertEqual(stats[key], plain[key])

    # --- what is refused

    def test_bad_options_are_refused_before_the_run(self):
        forked = (self.guests, "--entry", "forked", "--arg", "1")
        self.assertIn(".folded or .callgrind", self.refused(*forked, "--profile=p.txt"))
        self.assertIn("empty element", self.refused(*forked, "--profile=,"))
        self.assertIn("--power-trace needs --energy",
                      self.refused(*forked, "--power-trace", "w.csv"))
        self.assertIn(".csv or .html",
                      self.refused(*forked, "--energy", "fermi", "--power-trace", "w"))
        self.assertIn("no clock",
                      self.refused(*forked, "--energy", "ptx-volta", "--power-trace", "w.csv"))
        self.assertIn("no clock", self.refused(*forked, "--profile", "--timing", "ptx-volta"))
        self.assertIn("--timing needs", self.refused(*forked, "--timing", "cortex-a7"))
        self.assertIn("--profile=FILE",
                      self.refused(*forked, "--profile", "--call-stacks", "on"))
        self.assertIn("does not work with --chip",
                      self.refused(*forked, "--profile=p.folded", "--chip", "x", "--call-stacks",
                                   "on"))
        self.assertIn("--call-stacks", self.refused(*forked, "--call-stacks", "maybe"))
        self.refused(*forked, "--profile", "--timing", "no-such-target")
        self.refused(*forked, "--timeline", "no/such/folder/t.json")


if __name__ == "__main__":
    Profile.gpusim = pathlib.Path(sys.argv[1]).resolve()
    Profile.build = pathlib.Path(sys.argv[2]).resolve()
    Profile.examples = pathlib.Path(sys.argv[3]).resolve()
    unittest.main(argv=sys.argv[:1] + sys.argv[4:])
