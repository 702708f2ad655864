#!/usr/bin/env python3
"""Programs on backend cuda under `gpusim cuda`, beside backend scalar: output, status, faults and
counts are the same, and `gpusim cuda --check` finds nothing in the backend's kernels.

  test_programs.py GPUSIM GPUSIM_PTX FOLDER [--check] [--regions] [--sample N]
                   PROGRAM[:CORES,CORES...]...

A PROGRAM is an ELF file, maybe with arguments (FILE+ARGUMENT+ARGUMENT), or services or faulty
(programs/), which are built for AArch64 and RISC-V. --regions: all of a program's code is compiled
as regions, before it runs: with the interpreter by nvcc, alone by NVRTC.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
CC = {"aarch64": "aarch64-linux-gnu-gcc", "riscv64": "riscv64-linux-gnu-gcc"}
# How often cores look whether they may go on depends on how they interleave. Only these functions
# wait; a program that has none of them counts the same to the last instruction.
WAITING = {"gpusim_barrier", "finish", "omp_barrier", "work"}
SAME = ("isa", "cores", "exit_status", "faults", "fault_reports", "active_cores")
FAULTS = {"load": 139, "store": 139, "jump": 139, "abort": 134}
problems = []


def build(name, isa, folder):
    elf = folder / f"{name}.{isa}.elf"
    subprocess.run([CC[isa], "-O2", "-g", "-static", HERE / "programs" / f"{name}.c", "-lm", "-o",
                    elf], check=True)
    return elf


def tallies(stats):
    """Instructions by class of each function that does not wait, and of the whole if none does."""
    functions = {f["function"]: f["classes"] for f in stats["functions"]}
    waits = WAITING & functions.keys()
    found = {name: c for name, c in functions.items() if name not in waits}
    if not waits:
        found["all"] = (stats["guest_instructions"], stats["classes"])
    return found


class Comparison:
    def __init__(self, args):
        self.args = args
        self.folder = args.folder
        self.folder.mkdir(parents=True, exist_ok=True)
        # Files of programs, and whether the device passed its own test.
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")}
        if args.regions:
            self.environment["GPUSIM_COMPILED_REGIONS"] = "ptx"
            self.environment["PATH"] += ":/usr/local/cuda/bin"

    def run(self, backend, command, cores, options):
        stats = self.folder / f"{backend}.json"
        findings = self.folder / "findings.json"
        for path in stats, findings:
            path.unlink(missing_ok=True)
        words = [self.args.gpusim_ptx, "run", "--backend", backend, "--quiet", "--cores", cores,
                 "--memory-size", "64M", "--stats", stats, *options, *command]
        if backend == "cuda":
            checks = ["--check"] if self.args.check else []
            words = [self.args.gpusim, "cuda", "--quiet", *checks, "--stats", findings, "--",
                     *words]
        done = subprocess.run(list(map(str, words)), capture_output=True, timeout=300, check=False,
                              cwd=self.folder, env=self.environment)
        report = json.loads(findings.read_text()) if backend == "cuda" else {}
        # A check that found something says so on standard error: it is told apart below.
        said = [] if report.get("findings") else done.stderr.splitlines()
        return (done.returncode, done.stdout, said), json.loads(stats.read_text()), report

    def compare(self, name, command, cores, status=0, options=()):
        begin = time.monotonic()
        title = f"{name} on {cores} cores"
        want, scalar, _ = self.run("scalar", command, cores, options)
        got, cuda, report = self.run("cuda", command, cores, options)
        seconds = time.monotonic() - begin
        if want[0] != status:
            problems.append(f"{title}: status {want[0]} on scalar, not {status}")
        if want != got:
            problems.append(f"{title}: {want} on scalar, {got} on cuda")
        if report.get("launches", 0) == 0:
            problems.append(f"{title}: no kernel was launched")
        kernels = [k["symbol"] for k in report.get("kernels", [])]
        for kernel in ("gpusim_simulate_compiled", "gpusim_simulate_regions"):
            if self.args.regions and kernel not in kernels:
                problems.append(f"{title}: {kernel} was not launched, only {kernels}")
        for finding in report.get("findings", []):
            problems.append(f"{title}: {finding['text']}")
        for key in SAME:
            if scalar[key] != cuda[key]:
                problems.append(f"{title}: {key}: {scalar[key]} on scalar, {cuda[key]} on cuda")
        here, there = tallies(scalar), tallies(cuda)
        for function in sorted(here.keys() | there.keys()):
            if here.get(function) != there.get(function):
                problems.append(f"{title}: {function}: {here.get(function)} on scalar, "
                                f"{there.get(function)} on cuda")
        print(f"{title}: {seconds:.1f} s, {scalar['guest_instructions']} guest instructions, "
              f"{report.get('instructions', 0)} of kernels", flush=True)


def runs_of(words, folder):
    """Arguments of Comparison.compare() for each run of the programs."""
    for word in words:
        program, _, cores = word.partition(":")
        if program == "services":
            for isa in CC:
                yield (f"{program} of {isa}", [build(program, isa, folder), "--", "notes.txt"], 1,
                       17, ["--root", "."])
        elif program == "faulty":
            for isa in CC:
                elf = build(program, isa, folder)
                for how, status in FAULTS.items():
                    yield f"{how} of {isa}", [elf, "--", how], 1, status
        else:
            elf, *words = program.split("+")
            for count in (cores or "1,33,64").split(","):
                yield pathlib.Path(elf).stem, [elf, *(["--", *words] if words else [])], count


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gpusim", type=pathlib.Path)
    parser.add_argument("gpusim_ptx", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--regions", action="store_true")
    parser.add_argument("--sample", type=int, metavar="N",
                        help="N of the runs, others each time; GPUSIM_SEED repeats a draw, "
                             "GPUSIM_LONG runs all")
    parser.add_argument("programs", nargs="+")
    args = parser.parse_args()
    comparison = Comparison(args)
    runs = list(runs_of(args.programs, args.folder))
    if args.sample and not os.environ.get("GPUSIM_LONG"):
        seed = int(os.environ.get("GPUSIM_SEED") or random.SystemRandom().getrandbits(32))
        print(f"replay: GPUSIM_SEED={seed}", flush=True)
        runs = random.Random(seed).sample(runs, args.sample)
    for run in runs:
        comparison.compare(*run)
    for text in problems:
        print("FAIL", text)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
