#!/usr/bin/env python3
"""Berkeley TestFloat's vectors through A64 floating-point instructions: results and flags.

testfloat_gen (from QEMU's source package) makes operands, results and exception flags; a guest
program on many simulated cores runs every scalar and vector instruction of an operation on them in
the rounding mode asked for. Underflow is detected before rounding, NaNs are propagated as A64 does,
or replaced by the default NaN with FPCR.DN = 1.
"""

import fnmatch
import os
import pathlib
import random
import subprocess
import sys
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "qemu")]
import guest_programs  # noqa: E402
import harness  # noqa: E402
from gcc_suite import COMPILER  # noqa: E402

CORES = "256"
TIMEOUT_S = 1200
DN = 1 << 25
MODES = {"near_even": 0, "max": 1 << 22, "min": 2 << 22, "minMag": 3 << 22}
# Instructions that have their rounding mode in their name.
NAMED = {"near_even": "n", "max": "p", "min": "m", "minMag": "z", "near_maxMag": "a"}
# What is the same whatever FPCR says: another mode stands there than the one asked for.
OTHER_MODE = MODES["max"]


@dataclass
class Job:
    function: str
    flags: list
    fpcr: int
    operands: int
    instructions: list
    default_nan: bool

    def name(self):
        words = [flag[1:] for flag in self.flags if flag != "-tininessbefore"]
        return ":".join([self.function, *words, *(["dn"] if self.default_nan else [])])


def all_jobs():
    jobs = []

    def add(function, mode, operands, instructions, fpcr=None, extra=(), nan=(False, True)):
        for default_nan in nan:
            jobs.append(Job(function, [f"-r{mode}", "-tininessbefore", *extra],
                            (MODES[mode] if fpcr is None else fpcr) | DN * default_nan, operands,
                            [f"{function.split(':')[0]}{i}" if not i or i.startswith("_") else i
                             for i in instructions], default_nan))

    for f in ("f16", "f32", "f64"):
        bits = f[1:]
        for mode in MODES:
            for name in ("add", "sub", "div"):
                add(f"{f}_{name}", mode, 2, ["", "_v"])
            add(f"{f}_mul", mode, 2, ["", "_v", "_e"])
            add(f"{f}_sqrt", mode, 1, ["", "_v"])
            # SoftFloat takes the NaN of another operand: only with default NaNs alike.
            add(f"{f}_mulAdd", mode, 3, ["", "_v", "_e"], nan=(True,))
            add(f"{f}_roundToInt", mode, 1, [f"{f}_rintx", f"{f}_rintx_v"], extra=["-exact"])
            add(f"{f}_roundToInt", mode, 1, [f"{f}_rinti", f"{f}_rinti_v"])
            for i in ("i", "ui"):
                for width in ("32", "64"):
                    forms = ["", "_s", "_v"] if width == bits else [""]
                    add(f"{i}{width}_to_{f}", mode, 1, forms, nan=(False,))
            for other in ("f16", "f32", "f64"):
                if other != f:
                    vector = ["_v", "_v2"] if {f, other} != {"f16", "f64"} else []
                    add(f"{f}_to_{other}", mode, 1, ["", *vector])
        for mode, letter in NAMED.items():
            name = f"{f}_rint{letter}"
            add(f"{f}_roundToInt", mode, 1, [name, f"{name}_v"], fpcr=OTHER_MODE)
            for i in ("i", "ui"):
                for width in ("32", "64"):
                    forms = ["", "_s", "_v"] if width == bits and f != "f16" else [""]
                    add(f"{f}_to_{i}{width}", mode, 1, [f"_{letter}{form}" for form in forms],
                        fpcr=OTHER_MODE, extra=["-exact"], nan=(False,))
        for name, form in (("eq", ["", "_v"]), ("le", ["_e", "_v"]), ("lt", ["_e", "_v"])):
            add(f"{f}_{name}", "near_even", 2, form)
        for name, function in (("eq_e", "eq_signaling"), ("le", "le_quiet"), ("lt", "lt_quiet")):
            add(f"{f}_{function}", "near_even", 2, [f"{f}_{name}"])
    add("f64_to_f32", "odd", 1, ["_odd", "_odd_v", "_odd_v2"], fpcr=OTHER_MODE)
    return jobs


def build(folder, plugin_folder, jobs):
    subprocess.run([HERE / "build_testfloat", plugin_folder, folder], check=True)
    depends = [HERE / "instructions.def", *guest_programs.HEADERS]
    harness.build_all({
        "guest.elf": [COMPILER, *guest_programs.FLAGS, "-march=armv8.2-a+fp16",
                      "-fno-tree-vectorize", "-I", HERE, HERE / "guest.c",
                      *guest_programs.RUNTIME],
        "pack": ["/usr/bin/cc", "-O2", "-Wall", "-Wextra", HERE / "pack.c"],
    }, harness.compiler_version(COMPILER) + "".join(d.read_text() for d in depends), folder, jobs)


def run_job(job, engine, arguments, start):
    """TestFloat's generator, the packer and gpusim in a pipe."""
    folder = arguments.build
    generator = folder / ("testfloat_gen-dn" if job.default_nan else "testfloat_gen")
    command = [arguments.gpusim, "run", *harness.ENGINES[engine], "--cores", CORES, "--threads",
               "1", "--quiet", *harness.coverage_options(), *arguments.options,
               folder / "guest.elf", "--", str(job.operands), str(job.fpcr), *job.instructions]
    if arguments.qemu:
        command = ["/usr/bin/qemu-aarch64", "-cpu", "max", folder / "guest.elf", *command[-2 - len(
            job.instructions):]]
    generate = subprocess.Popen([generator, *job.flags, job.function], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL)
    pack = subprocess.Popen([folder / "pack", str(job.operands), str(arguments.every),
                             str(start)], stdin=generate.stdout, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)
    generate.stdout.close()
    try:
        done = subprocess.run(command, stdin=pack.stdout, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return f"timeout after {TIMEOUT_S} s"
    finally:
        pack.stdout.close()
        for process in (pack, generate):
            if process.poll() is None and sys.exc_info()[0]:
                process.kill()
        kept = pack.stderr.read().decode().strip()
        pack.stderr.close()
        statuses = pack.wait(), generate.wait()
    if done.returncode != 0:
        text = done.stdout.decode() or harness.first_line(done.stderr)
        return f"status {done.returncode}: {text.splitlines()[0] if text else ''}"
    if statuses != (0, 0) or kept == "0":
        return f"TestFloat: statuses {statuses}, {kept} vectors"
    if done.stdout.decode().strip() != kept:
        return f"{done.stdout.decode().strip()} vectors checked of {kept}"
    run_job.vectors += int(kept) * len(job.instructions)
    return None


def add_arguments(parser):
    parser.add_argument("--every", type=int, default=1, metavar="N",
                        help="each Nth vector, from a place that GPUSIM_SEED gives (else random)")
    parser.add_argument("--qemu", action="store_true", help="check the test itself with QEMU")


def main():
    arguments = harness.parse_arguments(__doc__.splitlines()[0], levels="level1", more=add_arguments)
    harness.build_plugin(arguments.build.parent / "plugin")
    build(arguments.build, arguments.build.parent / "plugin", arguments.jobs)
    seed = int(os.environ.get("GPUSIM_SEED", random.randrange(1_000_000)))
    start = seed % arguments.every
    run_job.vectors = 0
    cases = []
    for number, job in enumerate(all_jobs()):
        if not fnmatch.fnmatchcase(job.name(), arguments.only):
            continue
        # A sample takes the engines in turns.
        engines = (arguments.engines if arguments.sample == 1 else
                   [arguments.engines[number % len(arguments.engines)]])
        for engine in engines:
            cases.append(harness.Case(
                job.name(), "level1", "cores",
                lambda job=job, engine=engine: run_job(job, engine, arguments, start), engine))
    print(f"{len(cases)} runs, each {arguments.every}th vector; replay: GPUSIM_SEED={seed}",
          flush=True)
    status = harness.run_cases(cases, harness.read_skips(HERE / "skip.txt"), arguments.jobs)
    print(f"{run_job.vectors} times an instruction met TestFloat's result and flags")
    return status


if __name__ == "__main__":
    sys.exit(main())
