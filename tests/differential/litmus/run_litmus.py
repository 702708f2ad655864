#!/usr/bin/env python3
"""Litmus tests of an ISA's memory model (tests.txt, riscv_tests.txt) on every backend.

Each test runs many times on many instances at once, in arrangements drawn from a seed: roles mixed
within a lane group or apart, locations beside each other, in lines, shuffled or in stacks, of all
sizes, with and without delays. Every outcome must be one that the model allows. A configuration is
a backend with a width of groups, host threads, slice length and the like.

GPUSIM_SEED replays a run as far as host threads allow.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import a64
import litmus_tests
import riscv

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import guest_programs  # noqa: E402

# What its tests are, which may fail, what compiles them.
ISAS = {"aarch64": (a64, "tests.txt", "known.txt", guest_programs.AARCH64, "armv8.3-a"),
        "riscv64": (riscv, "riscv_tests.txt", "riscv_known.txt", guest_programs.RISCV64,
                    "rv64gc")}
LAYOUTS = ["consecutive", "lines", "packed", "shuffled", "stacks"]
JITTERS = ["none", "per role", "per core", "per turn"]
MIXED, APART = ~0, ~0b11111  # masks of spans: any, or 32 and more cores with one role
IN_LARGE_SLICES = ("--slice", "100000000")


class Config:
    """`patience`: polls at a barrier before a core gives way. Groups that run at the same time need
    some; where they take turns it is wasted."""

    def __init__(self, family, name, options, cores, share, patience=4, spans=MIXED, threads=1,
                 turns=32):
        self.family, self.name, self.options, self.cores = family, name, options, cores
        self.share, self.patience, self.spans, self.threads = share, patience, spans, threads
        self.turns = turns


def slices(text):
    return ("--slice", text)


SIMD = ("--backend", "simd")
CONFIGS = [
    Config("scalar", "slices of 7", ("--backend", "scalar", *slices("7")), 8, 0.5),
    Config("scalar", "slices of 40", ("--backend", "scalar", *slices("40")), 12, 0.5),
    Config("simd", "native, 1 thread", (*SIMD, *slices("60"), "--threads", "1"), 128, 0.2, turns=4),
    Config("simd", "native at once, 1 thread",
           (*SIMD, *slices("60"), "--threads", "1", "--native-after", "0"), 128, 0.2, turns=4),
    Config("simd", "native, 2 threads", (*SIMD, *IN_LARGE_SLICES, "--threads", "2"), 128, 0.3,
           patience=20000, spans=APART, threads=2),
    Config("simd", "native at once, 2 threads",
           (*SIMD, *IN_LARGE_SLICES, "--threads", "2", "--native-after", "0"), 128, 0.3,
           patience=20000, spans=APART, threads=2),
    Config("simd interpreted", "1 thread",
           (*SIMD, *slices("100"), "--threads", "1", "--no-native"), 128, 0.2, turns=4),
    Config("simd interpreted", "1 thread, width 8",
           (*SIMD, *slices("20"), "--threads", "1", "--group-width", "8"), 40, 0.2),
    Config("simd interpreted", "1 thread, width 1",
           (*SIMD, *slices("15"), "--threads", "1", "--group-width", "1"), 6, 0.1),
    Config("simd interpreted", "2 threads",
           (*SIMD, *IN_LARGE_SLICES, "--threads", "2", "--no-native"), 128, 0.3,
           patience=5000, spans=APART, threads=2),
    Config("simd interpreted", "2 threads, width 4",
           (*SIMD, *IN_LARGE_SLICES, "--threads", "2", "--group-width", "4"), 8, 0.1,
           patience=2000, spans=~0b11, threads=2),
    Config("simd interpreted", "2 threads, width 1",
           (*SIMD, *IN_LARGE_SLICES, "--threads", "2", "--group-width", "1"), 2, 0.1,
           patience=2000, threads=2),
]


CUDA_CONFIGS = [
    Config("cuda", "slices of 20", ("--backend", "cuda", *slices("20")), 40, 0.5),
    Config("cuda", "slices of 100", ("--backend", "cuda", *slices("100")), 64, 0.5),
]
# On a GPU, whose warps and multiprocessors run at the same time.
GPU_CONFIGS = [
    *CUDA_CONFIGS,
    Config("cuda", "one slice", ("--backend", "cuda"), 64, 1, patience=200, turns=8),
    Config("cuda", "warps at once", ("--backend", "cuda", *IN_LARGE_SLICES), 512, 4, patience=2000,
           spans=APART),
    Config("cuda", "all at once", ("--backend", "cuda", *IN_LARGE_SLICES), 4096, 16, patience=2000,
           spans=APART),
]


def build(isa_name, tests, folder):
    isa, _, _, guest, architecture = ISAS[isa_name]
    folder.mkdir(parents=True, exist_ok=True)
    litmus_tests.write_program(isa, tests, folder)
    elf = folder / "litmus.elf"
    subprocess.run([guest.compiler, *guest.flags, "-g", f"-march={architecture}", "-Werror", "-I",
                    HERE, "-o", elf, HERE / "litmus.c", folder / "table.c", folder / "bodies.S",
                    *guest.runtime, "-lgcc"], check=True)
    return elf


def run(gpusim, elf, config, iterations, seed, first, count, has_seed):
    """(test number → outcome → count, problems, seconds of CPU)"""
    command = [gpusim, "run", "--quiet", *config.options, "--cores", str(config.cores)]
    if has_seed:
        command += ["--seed", str(seed)]
    command += [elf, "--", str(first), str(count), str(iterations), str(config.turns), str(seed),
                str(config.patience), "31", "31", "15", "3", str(config.spans & 0xffffffff)]
    with tempfile.TemporaryFile("w+") as output, tempfile.TemporaryFile("w+") as messages:
        process = subprocess.Popen(command, stdout=output, stderr=messages)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        messages.seek(0)
        printed, said = output.read(), messages.read().strip()
    cpu = usage.ru_utime + usage.ru_stime
    histograms = collections.defaultdict(collections.Counter)
    problems = []
    if process.returncode != 0 or said:
        problems.append(f"exit status {process.returncode}: {said[:2000]}")
    where = {}
    for line in printed.splitlines():
        word, *fields = line.split()
        if word == "seen":
            histograms[int(fields[0])][int(fields[2], 16)] += int(fields[3])
        elif word == "bad":
            where[fields[0]] = " ".join(fields[2:])
    return histograms, where, problems, cpu


def readable(where):
    def name(pattern, names, text):
        return re.sub(pattern + r" (\d+)", lambda m: f"{pattern} {names[int(m[1])]}", text)
    return name("jitter", JITTERS, name("layout", LAYOUTS, where))


def check(tests, config, histograms, where, iterations, seed):
    """Failures by test name."""
    failures = {}
    for n, test in enumerate(tests):
        if len(test.threads) > config.cores:
            continue
        seen = histograms.get(n, {})
        allowed = {test.key_of(o) for o in test.allowed}
        bad = [key for key in seen if key not in allowed]
        if bad or test.name in where:
            lines = [f"{count:>10} {'FORBIDDEN' if key in bad else '         '} {test.text_of(key)}"
                     for key, count in sorted(seen.items())]
            failures[test.name] = (
                f"{test.name}: an outcome that the architecture forbids, on {config.family}, "
                f"{config.name} (GPUSIM_SEED={seed})\n" +
                "\n".join(f"      {t}: " + "; ".join(p) for t, p in enumerate(test.threads)) +
                "\n" + "\n".join(lines) + f"\n      first: {readable(where.get(test.name, '?'))}")
        elif sum(seen.values()) < iterations:
            failures[test.name] = f"{test.name}: {sum(seen.values())} of {iterations} iterations"
    return failures


def read_known(path):
    """NAME: why it may show an outcome that is forbidden."""
    lines = (x.split("#")[0].strip() for x in path.read_text().splitlines())
    return dict(line.split(": ", 1) for line in lines if line)


def prove_that_failures_show(args, tests, seen_by, has_seed):
    """What a configuration saw most is forbidden, and must be reported."""
    problems = []
    for name in ISAS[args.isa][0].MUTATED:
        test = next(t for t in tests if t.name == name)
        for config, histograms in seen_by:
            most = histograms[tests.index(test)].most_common(1)[0][0]
            kept = test.allowed
            test.allowed = {o for o in kept if test.key_of(o) != most}
            elf = build(args.isa, [test], args.build / "mutant")
            test_alone = run(args.gpusim, elf, config, 2048, args.seed, 0, 1, has_seed)
            failures = check([test], config, *test_alone[:2], 2048, args.seed)
            if "FORBIDDEN" not in failures.get(name, "") or name not in test_alone[1]:
                problems.append(f"mutated {name} was not reported on {config.family}, "
                                f"{config.name}")
            test.allowed = kept
    return problems


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpusim", type=pathlib.Path)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--isa", choices=ISAS, default="aarch64")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--iterations", type=int, default=2000,
                        help="of each test on each backend (simd counts twice: native and "
                             "interpreted)")
    parser.add_argument("--long", action="store_true", help="a million iterations")
    parser.add_argument("--only", help="tests whose names match this regular expression")
    parser.add_argument("--sample", type=int, help="so many of the tests, by the seed")
    parser.add_argument("--make-only", action="store_true", help="make the program of all tests")
    parser.add_argument("--configs", default="", help="configurations that match this one")
    parser.add_argument("--cuda", action="store_true", help="only backend cuda")
    parser.add_argument("--gpu", type=pathlib.Path, metavar="ELF",
                        help="backend cuda on a GPU, with the program of all tests that --build "
                             "has made: no compiler is needed")
    parser.add_argument("--histograms", action="store_true", help="print what was seen")
    args = parser.parse_args()
    args.build = args.build.resolve()
    if args.make_only:
        isa, list_of_tests = ISAS[args.isa][:2]
        build(args.isa, litmus_tests.read_tests(isa, HERE / list_of_tests), args.build)
        return
    if not args.gpusim:
        parser.error("--gpusim is missing")
    if args.gpu and (args.only or args.sample):
        parser.error("--gpu runs all tests: the program has them all")
    args.gpusim = args.gpusim.resolve()
    if args.long:
        args.iterations = 1_000_000
    args.seed = int(os.environ.get("GPUSIM_SEED", random.randrange(1 << 31)))
    print(f"replay: GPUSIM_SEED={args.seed}", flush=True)

    isa, list_of_tests, list_of_known = ISAS[args.isa][:3]
    tests = litmus_tests.read_tests(isa, HERE / list_of_tests)
    if args.only:
        tests = [t for t in tests if re.search(args.only, t.name)]
    if args.sample and args.sample < len(tests):
        tests = random.Random(args.seed).sample(tests, args.sample)
    known = read_known(HERE / list_of_known)
    elf = args.gpu or build(args.isa, tests, args.build)
    options = subprocess.run([args.gpusim, "run", "--help"], capture_output=True, text=True).stdout
    has_seed = "--seed" in options
    configs = [c for c in (GPU_CONFIGS if args.gpu else CUDA_CONFIGS if args.cuda else CONFIGS)
               if re.search(args.configs, f"{c.family}, {c.name}")]
    failed, surprises, total = {}, set(), collections.Counter()
    everything = collections.defaultdict(collections.Counter)

    def one(number_and_config):
        number, config = number_and_config
        share = max(int(args.iterations * config.share), 256)
        histograms, where, problems, cpu = run(args.gpusim, elf, config, share, args.seed + number,
                                               0,
                                             len(tests), has_seed)
        return config, share, histograms, where, problems, cpu

    # Two host threads each are enough for two processors.
    alone = [x for x in enumerate(configs) if x[1].threads > 1]
    together = [x for x in enumerate(configs) if x[1].threads == 1]
    with concurrent.futures.ThreadPoolExecutor(max(1, args.jobs)) as pool:
        results = list(pool.map(one, together))
    for x in alone:
        results.append(one(x))
    for config, share, histograms, where, problems, seconds in results:
        failures = check(tests, config, histograms, where, share, args.seed)
        if problems:
            failures["the run"] = f"{config.family}, {config.name}: " + "; ".join(problems)
        outcomes = sum(len(h) for h in histograms.values())
        varied = sum(len(h) > 1 for h in histograms.values())
        instances = sum(sum(h.values()) for h in histograms.values())
        total["instances"] += instances
        print(f"{config.family}, {config.name}: {len(histograms)} tests, {instances} iterations, "
              f"{outcomes} outcomes, {varied} tests with more than one, {seconds:.1f} s of CPU",
              flush=True)
        for n, h in histograms.items():
            everything[n] += h
        for name, text in failures.items():
            if name in known and "FORBIDDEN" in text:
                surprises.add(name)
            else:
                failed.setdefault(name, text)
    weak = sum(any(test.matches(o, test.states[0]) for o in test.allowed
                   if test.key_of(o) in everything[n])
               for n, test in enumerate(tests) if test.verdict == "allow")
    asked = sum(test.verdict == "allow" for test in tests)
    print(f"in all: {len(tests)} tests, {total['instances']} iterations, "
          f"{sum(map(len, everything.values()))} outcomes; {weak} of {asked} outcomes that the "
          "architecture allows and a simple machine does not show were seen")
    if args.histograms:
        for n, test in enumerate(tests):
            print(test.name)
            for key, count in sorted(everything[n].items()):
                print(f"{count:>12} {test.text_of(key)}")
    problems = list(failed.values())
    if not args.only and not args.configs and not args.sample and not args.gpu:
        for name in [] if args.cuda else set(known) - surprises:
            problems.append(f"{name} is in {list_of_known} ({known[name]}), and did not fail")
        sb = next(n for n, t in enumerate(tests) if t.name == "SB+pos")
        if len(everything[sb]) < 2:
            problems.append("SB+pos always ends alike: nothing interleaves")
        single = [(r[0], r[2]) for r in results if r[0].threads == 1]
        problems += prove_that_failures_show(args, tests, single[::3], has_seed)
    for text in problems:
        print(f"FAIL {text}")
    for name in sorted(surprises):
        print(f"known: {name}: {known[name]}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
