#!/usr/bin/env python3
"""Runs guest programs on backend cuda and compares output and exit status with backend scalar.

Counts of instructions are not compared: how long cores wait depends on how they interleave.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import time


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpusim", required=True, type=pathlib.Path)
    parser.add_argument("--cores", default="1,7,33,64,1000")
    parser.add_argument("--compiled", type=int, metavar="N", default=0,
                        help="with compiled regions, which execute at least N instructions")
    parser.add_argument("--alone", type=int, metavar="N", default=0,
                        help="for --compiled: at least N of them in kernels without the "
                             "interpreter")
    parser.add_argument("--slice", help="for --compiled: only what is hot after two slices of so "
                                        "many instructions, not all code")
    parser.add_argument("programs", nargs="+", type=pathlib.Path)
    args = parser.parse_args()
    problems = []
    for program in args.programs:
        for cores in args.cores.split(","):
            begin = time.monotonic()
            want = run(args.gpusim, "scalar", cores, program, {})
            got = run(args.gpusim, "cuda", cores, program, variables(args),
                      ["--slice", args.slice] if args.slice else [])
            print(f"{program.stem} on {cores} cores: {time.monotonic() - begin:.1f} s", flush=True)
            if want != got:
                problems.append(f"{program.stem} on {cores} cores: {want} on scalar, {got} on cuda")
    for text in problems:
        print("FAIL", text)
    sys.exit(1 if problems else 0)


def variables(args):
    if not args.compiled:
        return {}
    return {"GPUSIM_EMULATED_REGIONS": "" if args.slice else "loops",
            "GPUSIM_EMULATED_REGIONS_LEAST": str(args.compiled),
            "GPUSIM_EMULATED_REGIONS_ALONE_LEAST": str(args.alone)}


def run(gpusim, backend, cores, program, more, options=()):
    done = subprocess.run([gpusim, "run", "--quiet", "--backend", backend, "--cores", cores,
                           *options, program],
                          capture_output=True, timeout=600, env={**os.environ, **more})
    return done.returncode, done.stdout, done.stderr


if __name__ == "__main__":
    main()
