#!/usr/bin/env python3
"""Runs the C and C++ programs of GCC's own libgomp test suite with libgpusim_omp instead of
libgomp.

They check themselves: a program that returns 0 has passed. Engine `qemu` is qemu-user with eight
threads; on gpusim there are 64 cores. Programs that need an offload device are left out.
"""

import dataclasses
import functools
import hashlib
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "qemu"))
import gcc_suite  # noqa: E402
import harness  # noqa: E402

SUITES = ("libgomp.c", "libgomp.c-c++-common", "libgomp.c++")
COMPILERS = {".c": "gcc", ".C": "g++"}  # behind /usr/bin/<isa>-linux-gnu-
ENVIRONMENT = re.compile(r'dg-set-target-env-var +(\w+) +"([^"]*)"')
REQUIRED = re.compile(r"dg-require-effective-target +(\S+)")
MORE_SOURCES = re.compile(r'dg-additional-sources +"?([^"}]*)"?')
# Effective targets that hold for guest programs, which have no device.
HOLD = {"tls", "tls_runtime", "pthread", "lto", "run_expensive_tests", "c99_runtime",
        "sync_char_short",
        "sync_int_long", "alloca", "offload_target_any", "vect_simd_clones", "fopenmp",
        # Debian's compiler has no offload compiler, and so no device:
        "offload_device_none"}
TIMEOUT_S = 240


@dataclasses.dataclass(frozen=True)
class Program:
    source: pathlib.Path
    suite: str
    isa: str

    @property
    def name(self):
        return f"{self.suite}/{self.source.relative_to(self.source.parents[0]).stem}"

    @functools.cached_property
    def text(self):
        return self.source.read_text(errors="replace")

    def is_for_us(self):
        if re.search(r"dg-do +run +\{ *target +[^}]*offload_device", self.text):
            return False
        directives = gcc_suite.Directives(self.text)
        required = [name.rstrip("}") for name in REQUIRED.findall(self.text)]
        return directives.action in (None, "run") and all(
            name.lstrip("!") in HOLD for name in required)

    def output(self):
        prefix = "" if self.isa == "aarch64" else f"{self.isa}-"
        return f"{prefix}{self.suite}-{self.source.parent.name}-{self.source.name}.elf"

    def command(self, library, include):
        directives = gcc_suite.Directives(self.text)
        options = directives.options if directives.options is not None else ["-O2"]
        more = [self.source.parent / word for line in MORE_SOURCES.findall(self.text)
                for word in line.split()]
        compiler = f"/usr/bin/{self.isa}-linux-gnu-{COMPILERS[self.source.suffix]}"
        return [compiler, "-fopenmp", "-static", "-w", "-I", include,
                "-B", f"{library}/", *options, *directives.additional, self.source, *more, "-lm"]


def run(command, environment, folder, fails):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True,
                              timeout=TIMEOUT_S, env=environment, cwd=folder)
    except subprocess.TimeoutExpired:
        return f"timeout after {TIMEOUT_S} s"
    if (done.returncode != 0) == fails:
        return None
    return f"status {done.returncode}: {harness.first_line(done.stderr)}"


def check(arguments, problems, program, engine):
    if program.output() in problems:
        return f"cannot be built: {problems[program.output()]}"
    environment = {"OMP_NUM_THREADS": "8", **dict(ENVIRONMENT.findall(program.text))}
    fails = "dg-shouldfail" in program.text
    elf = arguments.build / program.output()
    if engine == "qemu":
        return run([harness.ORACLES[program.isa].program, elf], environment, arguments.build, fails)
    options = [word for name, value in environment.items() for word in ("--env", f"{name}={value}")]
    return run([arguments.gpusim, "run", "--threads", "1", "--cores", "64",
                *harness.ENGINES[engine],
                "--quiet", *options, *arguments.options, elf], {}, arguments.build, fails)


def more_arguments(parser):
    parser.add_argument("--library", type=pathlib.Path, required=True,
                        help="folder of libgpusim_omp.a")
    parser.add_argument("--isa", choices=harness.ORACLES, default="aarch64")


def main():
    arguments = harness.parse_arguments(__doc__.splitlines()[0], "O2", more_arguments)
    folder = arguments.build / "libgomp-suite"
    programs = []
    for suite in SUITES:
        root = gcc_suite.unpack(folder, suite, below="libgomp/testsuite")
        programs += [Program(p, suite, arguments.isa)
                     for p in sorted(root.rglob("*")) if p.suffix in COMPILERS]
    # Some declare the entry points by libgomp's own header.
    gcc_suite.unpack(folder, "libgomp_g.h", below="libgomp")
    programs = [p for p in programs if p.is_for_us()
                and (pathlib.PurePath(p.name).match(arguments.only)
                                                         or arguments.only == "*")]
    drawn = harness.draw(arguments, [p.output() for p in programs])
    programs = [p for p in programs if p.output() in drawn]

    arguments.build.mkdir(parents=True, exist_ok=True)
    library = arguments.library.resolve()
    commands = {p.output(): p.command(library, folder) for p in programs}
    common = hashlib.sha256((library / "libgpusim_omp.a").read_bytes()).hexdigest()
    problems = harness.try_build(commands, common, arguments.build / "elf", arguments.jobs)
    arguments.build = arguments.build / "elf"

    cases = [harness.Case(p.name, "O2", engine,
                          functools.partial(check, arguments, problems, p, engine), engine)
             for p in programs for engine in arguments.engines]
    return harness.run_cases(cases, harness.read_skips(HERE / "libgomp_skip.txt"), arguments.jobs)


if __name__ == "__main__":
    sys.exit(main())
