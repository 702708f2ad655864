#!/usr/bin/env python3
"""Runs OpenMP programs with libgpusim_omp on gpusim and compares their output with GCC's own
libgomp.

The expected output is that of the program built for this machine with its GCC and libgomp. Then the
program, built with our library for the guest ISA of --isa, runs under qemu-user and on gpusim with
1, 4, 64 and 1,000 cores. A program may say in its first lines:

  // env: OMP_CANCELLATION=true      environment
  // cores: 12                       on so many cores only
"""

import fnmatch
import functools
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "qemu"))
import harness  # noqa: E402

DIRECTIVE = re.compile(r"^// (env|cores): (.*)$", re.M)
COMPILERS = {".c": "gcc", ".cc": "g++"}
MARCH = {"aarch64": "armv8.1-a", "riscv64": "rv64gc"}
# No contraction: the same floating-point operations on every machine.
FLAGS = ["-fopenmp", "-ffp-contract=off", "-Wall", "-Wno-unknown-pragmas"]
TIMEOUT_S = 1800  # the emulated GPU of a busy machine takes minutes for one program


class Program:
    def __init__(self, source, isa):
        self.source = source
        self.isa = isa
        self.name = f"{source.parent.name}/{source.stem}"
        directives = dict(DIRECTIVE.findall(source.read_text()[:400]))
        self.environment = directives.get("env", "").split()
        self.cores = directives.get("cores")

    def output(self, kind):
        prefix = "" if "aarch64" == self.isa or kind == "native" else f"{self.isa}-"
        return f"{prefix}{self.source.parent.name}-{self.source.stem}.{kind}"

    def commands(self, library):
        compiler = COMPILERS[self.source.suffix]
        common = ["-O2", *FLAGS, "-I", HERE, self.source]
        return {self.output("native"): [compiler, *common, "-lm"],
                self.output("elf"): [f"/usr/bin/{self.isa}-linux-gnu-{compiler}", *common,
                                     f"-march={MARCH[self.isa]}", "-static", "-B", f"{library}/",
                                     "-lm"]}


def run(command, environment):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=TIMEOUT_S, env=environment)
    except subprocess.TimeoutExpired:
        return f"timeout after {TIMEOUT_S} s", b"", b""
    return done.returncode, done.stdout, done.stderr


@functools.lru_cache(maxsize=None)
def expected(build, program):
    environment = dict(pair.split("=") for pair in program.environment)
    result = run([build / program.output("native")],
                 {"PATH": os.environ.get("PATH", ""), "OMP_NUM_THREADS": "4",
                  "OMP_WAIT_POLICY": "passive", **environment})
    if result[0] != 0:
        sys.exit(f"{program.name} natively: status {result[0]}: {harness.first_line(result[2])}")
    return result[1]


def differs(build, program, result):
    want = expected(build, program)
    status, stdout, stderr = result
    if status != 0:
        return f"status {status}: {harness.first_line(stderr)}"
    return None if stdout == want else "output differs: " + harness.describe_difference(want,
                                                                                        stdout)


def qemu_check(arguments, program, threads):
    environment = [f"OMP_NUM_THREADS={threads}", *program.environment]
    options = [word for pair in environment for word in ("-E", pair)]
    return differs(arguments.build, program,
                   run([harness.ORACLES[program.isa].program, *options,
                        arguments.build / program.output("elf")], {}))


def gpusim_check(arguments, program, engine, cores):
    options = [word for pair in program.environment for word in ("--env", pair)]
    return differs(arguments.build, program,
                   run([arguments.gpusim, "run", "--threads", "1", "--cores", str(cores),
                        *harness.ENGINES[engine], "--quiet", *options, *arguments.options,
                        arguments.build / program.output("elf")], {}))


def more_arguments(parser):
    parser.add_argument("--library", type=pathlib.Path, required=True,
                        help="folder of libgpusim_omp.a")
    parser.add_argument("--cores", default="1,4,64,1000")
    parser.add_argument("--isa", choices=MARCH, default="aarch64")


def main():
    arguments = harness.parse_arguments(__doc__.splitlines()[0], "O2", more_arguments)
    programs = [Program(p, arguments.isa)
                for p in sorted((*HERE.glob("[ck]*/*.c"), *HERE.glob("*/*.cc")))
                if fnmatch.fnmatch(f"{p.parent.name}/{p.stem}", arguments.only)]
    commands = {}
    for program in programs:
        commands.update(program.commands(arguments.library.resolve()))
    # Programs are linked again when the library or a header changes.
    headers = [*HERE.glob("*.h"), arguments.library / "libgpusim_omp.a"]
    common = "".join(f"{p.name} {p.stat().st_mtime_ns} " for p in headers)
    harness.build_all(commands, common, arguments.build, arguments.jobs)

    cases = []
    for program in programs:
        def case(mode, check, engine="qemu", program=program):
            cases.append(harness.Case(program.name, "O2", mode, check, engine))
        if "qemu" in arguments.engines:
            for threads in (1, 2, 7):
                case(f"{threads} threads",
                     functools.partial(qemu_check, arguments, program, threads))
        for engine in (e for e in arguments.engines if e != "qemu"):
            for cores in [program.cores] if program.cores else arguments.cores.split(","):
                case(f"{cores} cores",
                     functools.partial(gpusim_check, arguments, program, engine, cores), engine)
    return harness.run_cases(cases, [], arguments.jobs)


if __name__ == "__main__":
    sys.exit(main())
