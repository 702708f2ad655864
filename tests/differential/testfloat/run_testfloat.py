#!/usr/bin/env python3
"""Berkeley TestFloat's vectors through floating-point instructions: results and flags.

testfloat_gen (from QEMU's source package) makes operands, results and exception flags; a guest
program on many simulated cores runs every instruction of an operation on them in the rounding mode
asked for. Of A64, scalar and vector instructions: underflow is detected before rounding, NaNs are
propagated, or replaced by the default NaN with FPCR.DN = 1. Of RISC-V (F, D, Zfh, Zfa), with the
mode in fcsr and in the instruction: underflow is detected after rounding, NaNs are the canonical.
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

CORES = "256"
TIMEOUT_S = 1200
DN = 1 << 25
FORMATS = ("f16", "f32", "f64")
INTEGERS = ("i32", "ui32", "i64", "ui64")
MODES = {"near_even": 0, "max": 1 << 22, "min": 2 << 22, "minMag": 3 << 22}
# Instructions that have their rounding mode in their name.
NAMED = {"near_even": "n", "max": "p", "min": "m", "minMag": "z", "near_maxMag": "a"}
# What is the same whatever FPCR says: another mode stands there than the one asked for.
OTHER_MODE = MODES["max"]
# RISC-V's modes in the order of their numbers in fcsr.frm, as the names of instructions have them.
RISCV_MODES = {"near_even": "rne", "minMag": "rtz", "min": "rdn", "max": "rup",
               "near_maxMag": "rmm"}
RISCV_EXACT = ("i32_to_f64", "ui32_to_f64", "f16_to_f32", "f16_to_f64", "f32_to_f64")


@dataclass
class Job:
    function: str
    flags: list
    control: int  # what the guest program makes of it
    operands: int
    instructions: list
    specialization: str  # of SoftFloat

    def name(self):
        words = [flag[1:] for flag in self.flags if not flag.startswith("-tininess")]
        return ":".join([self.function, *words,
                         *(["dn"] if self.specialization.endswith("defaultNaN") else [])])

    def has_level2(self):
        """Level 2 of three operands has thousands of millions of vectors."""
        return self.operands < 3

    def generator(self):
        return f"testfloat_gen-{self.specialization}"


def a64_jobs():
    jobs = []

    def add(function, mode, operands, instructions, fpcr=None, extra=(), nan=(False, True)):
        for default_nan in nan:
            jobs.append(Job(function, [f"-r{mode}", "-tininessbefore", *extra],
                            (MODES[mode] if fpcr is None else fpcr) | DN * default_nan, operands,
                            [f"{function.split(':')[0]}{i}" if not i or i.startswith("_") else i
                             for i in instructions],
                            "ARM-VFPv2-defaultNaN" if default_nan else "ARM-VFPv2"))

    for f in FORMATS:
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
            for other in FORMATS:
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


def riscv_jobs():
    jobs = []

    def add(function, mode, operands, instructions, extra=()):
        jobs.append(Job(function, [f"-r{mode}", "-tininessafter", *extra],
                        list(RISCV_MODES).index(mode), operands, instructions, "RISCV"))

    def both(name, mode):  # the mode from fcsr, and the instruction's own
        return [name, f"{name}_{RISCV_MODES[mode]}"]

    for mode in RISCV_MODES:
        for f in FORMATS:
            for name, operands in (("add", 2), ("sub", 2), ("mul", 2), ("div", 2), ("sqrt", 1)):
                add(f"{f}_{name}", mode, operands, both(f"{f}_{name}", mode))
            add(f"{f}_mulAdd", mode, 3, [name for kind in ("", "_msub", "_nmsub", "_nmadd")
                                         for name in both(f"{f}_mulAdd{kind}", mode)])
            add(f"{f}_roundToInt", mode, 1, both(f"{f}_round", mode))
            add(f"{f}_roundToInt", mode, 1, both(f"{f}_roundnx", mode), ["-exact"])
            for i in INTEGERS:
                add(f"{f}_to_{i}", mode, 1, both(f"{f}_to_{i}", mode), ["-exact"])
        for name in (*(f"{i}_to_{f}" for i in INTEGERS for f in FORMATS),
                     "f16_to_f32", "f16_to_f64", "f32_to_f64", "f32_to_f16", "f64_to_f16",
                     "f64_to_f32"):
            add(name, mode, 1, [name] if name in RISCV_EXACT else both(name, mode))
    for f in FORMATS:
        for function, names in (("eq", ["eq"]), ("le", ["le"]), ("lt", ["lt"]),
                                ("le_quiet", ["leq"]),
                                ("lt_quiet", ["ltq", "min", "max", "minm", "maxm"])):
            add(f"{f}_{function}", "near_even", 2, [f"{f}_{name}" for name in names])
    add("f64_to_i32", "minMag", 1, ["f64_to_i32_mod"], ["-exact"])
    return jobs


@dataclass(frozen=True)
class Target:
    """An ISA: its freestanding programs, how QEMU runs them, and what there is to run."""

    programs: guest_programs.Isa
    flags: tuple
    qemu: tuple
    specializations: tuple
    all_jobs: object


TARGETS = {target.programs.name: target for target in (
    Target(guest_programs.AARCH64, ("-march=armv8.2-a+fp16", "-fno-tree-vectorize"),
           ("/usr/bin/qemu-aarch64", "-cpu", "max"),
           ("ARM-VFPv2", "ARM-VFPv2-defaultNaN"), a64_jobs),
    Target(guest_programs.RISCV64, ("-march=rv64gc_zba_zbb_zbs_zfh",),
           ("/usr/bin/qemu-riscv64", "-cpu", "rv64,Zfh=true"), ("RISCV",), riscv_jobs))}


def build(target, folder, plugin_folder, jobs):
    subprocess.run([HERE / "build_testfloat", plugin_folder, folder, *target.specializations],
                   check=True)
    programs, own = target.programs, HERE / target.programs.name
    depends = [*own.iterdir(), *programs.headers]
    harness.build_all({
        "guest.elf": [programs.compiler, *programs.flags, *target.flags, "-Werror", "-I", own,
                      HERE / "guest.c", *programs.runtime],
        "pack": ["/usr/bin/cc", "-O2", "-Wall", "-Wextra", HERE / "pack.c"],
    }, harness.compiler_version(programs.compiler) + "".join(d.read_text() for d in depends),
        folder, jobs)


def run_job(job, engine, target, folder, arguments, seed):
    """TestFloat's generator, the packer and gpusim in a pipe."""
    command = [arguments.gpusim, "run", *harness.ENGINES[engine], "--cores", CORES, "--threads",
               "1", "--quiet", *harness.coverage_options(), *arguments.options,
               folder / "guest.elf", "--", str(job.operands), str(job.control), *job.instructions]
    if arguments.qemu:
        command = [*target.qemu, folder / "guest.elf", *command[-2 - len(job.instructions):]]
    level = ["-level", "2"] if arguments.level2 and job.has_level2() else []
    # Of one operand there are some hundred vectors: always all of them.
    every = arguments.every if job.operands > 1 else 1
    generate = subprocess.Popen([folder / job.generator(), *level, *job.flags, job.function],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    pack = subprocess.Popen([folder / "pack", str(job.operands), str(every), str(seed % every)],
                            stdin=generate.stdout, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
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
                        help="each Nth vector of operations on several operands, from a place "
                             "that GPUSIM_SEED gives (else random)")
    parser.add_argument("--isa", choices=TARGETS, default="aarch64")
    parser.add_argument("--level2", action="store_true",
                        help="TestFloat's level 2, but for operations on three operands")
    parser.add_argument("--draw", type=int, default=1, metavar="N",
                        help="about one in N operations and modes, others with another seed")
    parser.add_argument("--qemu", action="store_true", help="check the test itself with QEMU")


def main():
    arguments = harness.parse_arguments(__doc__.splitlines()[0], levels="level1",
                                        more=add_arguments)
    harness.build_plugin(arguments.build.parent / "plugin")
    target = TARGETS[arguments.isa]
    folder = arguments.build if arguments.isa == "aarch64" else arguments.build / arguments.isa
    build(target, folder, arguments.build.parent / "plugin", arguments.jobs)
    seed = int(os.environ.get("GPUSIM_SEED", random.randrange(1_000_000)))
    run_job.vectors = 0
    chosen = [job for job in target.all_jobs() if fnmatch.fnmatchcase(job.name(), arguments.only)]
    drawn = set(harness.sampled([job.name() for job in chosen], arguments.draw, seed))
    cases = []
    for number, job in enumerate(chosen, start=seed):
        if job.name() not in drawn:
            continue
        # A sample takes the engines in turns.
        engines = (arguments.engines if arguments.sample == 1 else
                   [arguments.engines[number % len(arguments.engines)]])
        for engine in engines:
            cases.append(harness.Case(
                job.name(), "level1", "cores",
                lambda job=job, engine=engine: run_job(job, engine, target, folder, arguments,
                                                       seed), engine))
    print(f"{len(cases)} runs, each {arguments.every}th vector; replay: GPUSIM_SEED={seed}",
          flush=True)
    status = harness.run_cases(cases, harness.read_skips(HERE / "skip.txt"), arguments.jobs)
    print(f"{run_job.vectors} times an instruction met TestFloat's result and flags")
    return status


if __name__ == "__main__":
    sys.exit(main())
