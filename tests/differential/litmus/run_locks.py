#!/usr/bin/env python3
"""Torture of locks that spin without hints (locks/): no lost update, no two owners, and all get on.

Prints the host's time per take. A core that waits is preempted at the end of its turn or slice, so
every lock makes progress whether or not the waiting loop gives way; how long that takes is shown.
"""

import argparse
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import guest_programs  # noqa: E402

CC = [guest_programs.AARCH64.compiler, *guest_programs.AARCH64.flags, "-g",
      "-march=armv8.1-a", "-Werror"]
KINDS = 16

SCALAR = ["--backend", "scalar"]
CUDA = ["--backend", "cuda"]
SIMD = ["--backend", "simd", "--threads"]
# options, cores, rounds, kinds (None: all)
ALWAYS = [
    (SCALAR, 1, 20, None), (SCALAR, 2, 20, None), (SCALAR, 64, 4, None), (SCALAR, 1000, 1, None),
    (SCALAR + ["--slice", "50"], 7, 20, None),
    (SIMD + ["1"], 1, 20, None), (SIMD + ["1"], 2, 4, None), (SIMD + ["2"], 64, 1, None),
    (SIMD + ["2", "--group-width", "1"], 2, 50, None),
    (SIMD + ["2", "--group-width", "4", "--slice", "2000"], 16, 3, None),
    (SIMD + ["1", "--no-regroup"], 64, 2, [10]),
    (SIMD + ["2", "--no-native", "--slice", "5000"], 100, 1, [0, 2, 4, 6, 9, 10, 11, 13, 14]),
]
LONG = [
    (SCALAR, 4096, 1, None), (SCALAR, 65536, 1, [0, 2, 4, 6, 11, 13, 14]),
    (SIMD + ["2"], 1000, 1, None), (SIMD + ["2"], 4096, 1, None),
    (SIMD + ["2", "--group-width", "1"], 1000, 1, None),
    (SIMD + ["2", "--group-width", "1"], 2, 100000, None),
]
# At the default slice, in which no lane may keep another of its warp waiting.
ALWAYS_CUDA = [
    (CUDA, 7, 1, [0, 2, 6]), (CUDA + ["--slice", "500"], 33, 1, [4, 10, 11, 14]),
]
LONG_CUDA = [(CUDA, 1, 20, None), (CUDA, 7, 2, None), (CUDA, 64, 4, None), (CUDA, 1000, 1, None)]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpusim", required=True, type=pathlib.Path)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=1, help="as other runners; one is used")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--cuda", action="store_true", help="only backend cuda")
    parser.add_argument("--each", action="store_true", help="a run, and so a time, per kind")
    args = parser.parse_args()
    build = args.build.resolve()
    build.mkdir(parents=True, exist_ok=True)
    elf = build / "locks.elf"
    subprocess.run([*CC, "-o", elf, HERE / "locks" / "locks.c", HERE / "locks" / "locks.S",
                    *guest_programs.AARCH64.runtime], check=True)
    problems = []
    always, more = (ALWAYS_CUDA, LONG_CUDA) if args.cuda else (ALWAYS, LONG)
    for options, cores, rounds, kinds in always + (more if args.long else []):
        kinds = list(range(KINDS)) if kinds is None else kinds
        for group in [[k] for k in kinds] if args.each else [kinds]:
            problems += run(args.gpusim.resolve(), elf, options, cores, rounds, group)
    for text in problems:
        print("FAIL", text)
    sys.exit(1 if problems else 0)


def run(gpusim, elf, options, cores, rounds, kinds):
    command = [gpusim, "run", "--quiet", *options, "--cores", str(cores), elf, "--", str(rounds),
               str(sum(1 << k for k in kinds))]
    what = " ".join([*options, "--cores", str(cores)])
    before = os.times()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=3000)
    except subprocess.TimeoutExpired:
        return [f"{what}: no end after 3,000 s"]
    after = os.times()
    seconds = (after.children_user + after.children_system
               - before.children_user - before.children_system)
    lines = [line.split(" ", 4) for line in done.stdout.splitlines()]
    problems = [f"{what}: {name}: {takes} takes, {errors} errors"
                for _, takes, errors, _,
                name in lines if int(errors) or int(takes) != cores * rounds]
    if done.returncode or done.stderr or [int(x[0]) for x in lines] != kinds:
        problems.append(f"{what}: exit status {done.returncode}: "
                        f"{done.stdout[-500:]}{done.stderr[:1000]}")
    name = lines[0][4] if len(kinds) == 1 and lines else f"{len(kinds)} kinds"
    takes = cores * rounds * len(kinds)
    print(f"{what}: {name}, {takes} takes, {seconds:.2f} s of CPU, {seconds / takes * 1e6:.1f} us "
          f"each",
          flush=True)
    return problems


if __name__ == "__main__":
    main()
