#!/usr/bin/env python3
"""Builds the programs in bare/, libc/ and threads/ at every level, and runs each under QEMU and gpusim.

Output, exit status and the number of guest instructions must be equal. A program may say in its
first lines how it wants to be built and run:

  // flags: -march=armv8.1-a+lse     more compiler flags
  // cpu: max                        QEMU's CPU model, where the default lacks an instruction
  // args: one "two words"           arguments; @DATA stands for the folder data/
  // cores: 8                        for its threads; their instructions are not counted, because
                                     who waits for whom, and how often, differs from run to run
"""

import fnmatch
import functools
import pathlib
import re
import shlex
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "qemu"))
import harness  # noqa: E402

COMPILERS = {".c": "/usr/bin/aarch64-linux-gnu-gcc", ".cc": "/usr/bin/aarch64-linux-gnu-g++"}
FLAGS = {
    # libgcc's outline atomics ask getauxval, which a program without libc has not got.
    "bare": ["-ffreestanding", "-nostdlib", "-fno-tree-loop-distribute-patterns",
             "-mno-outline-atomics", "-fno-stack-protector", "-fno-math-errno"],
    "libc": [],
    "threads": ["-pthread"],
}
DIRECTIVE = re.compile(r"^// (flags|cpu|args|cores): (.*)$", re.M)
# What a compiler may print: also the programs should be clean.
WARNINGS = ["-Wall", "-Wextra", "-Wno-unknown-pragmas"]


class Program:
    def __init__(self, source):
        self.source = source
        self.kind = source.parent.name
        self.name = f"{self.kind}/{source.stem}"
        directives = dict(DIRECTIVE.findall(source.read_text()[:600]))
        self.flags = shlex.split(directives.get("flags", ""))
        self.cpu = directives.get("cpu", harness.ORACLE_CPU)
        self.cores = directives.get("cores")
        self.arguments = [word.replace("@DATA", "data")
                          for word in shlex.split(directives.get("args", ""))]

    def elf(self, level):
        return f"{self.kind}-{self.source.stem}.{level}.elf"

    def command(self, level):
        libraries = ["-lgcc"] if self.kind == "bare" else ["-lm"]
        return [COMPILERS[self.source.suffix], f"-{level}", "-static", "-fno-pie", "-no-pie",
                *WARNINGS, *FLAGS[self.kind], *self.flags, self.source, *libraries]


def all_programs(pattern):
    sources = sorted((*HERE.glob("bare/*.c"), *HERE.glob("libc/*.c"), *HERE.glob("libc/*.cc"),
                      *HERE.glob("threads/*.c"), *HERE.glob("threads/*.cc")))
    programs = [Program(source) for source in sources]
    return [p for p in programs if fnmatch.fnmatchcase(p.name, pattern)]


def main():
    arguments = harness.parse_arguments(__doc__.splitlines()[0], levels="O0,O1,O2,O3")
    programs = all_programs(arguments.only)
    plugin = harness.build_plugin(arguments.build.parent / "plugin")
    version = "".join(map(harness.compiler_version, COMPILERS.values()))
    headers = "".join(header.read_text() for header in sorted(HERE.glob("*/*.h")))
    harness.build_all({p.elf(level): p.command(level) for level in arguments.levels for p in programs},
                      version + headers, arguments.build, arguments.jobs)

    cases = []
    for level in arguments.levels:
        for program in programs:
            elf = arguments.build / program.elf(level)
            # In the folder of the programs, so that data files have the same name everywhere.
            oracle = functools.cache(functools.partial(
                harness.run_qemu, plugin, elf, program.arguments, program.cpu, cwd=HERE))
            for mode in arguments.modes:
                if program.cores:
                    if mode != "one":
                        continue
                    mode = f"cores{program.cores}"
                    harness.MODES[mode] = ["--cores", program.cores]
                def check(elf=elf, program=program, oracle=oracle, mode=mode):
                    got = harness.run_gpusim(arguments.gpusim, elf, mode, program.arguments,
                                             arguments.options, cwd=HERE)
                    expected = oracle()
                    if program.cores:
                        expected.guest_instructions = got.guest_instructions
                    return harness.compare(expected, got, mode)
                cases.append(harness.Case(program.name, level, mode, check))
    print(f"{len(programs)} programs at {', '.join(arguments.levels)}")
    return harness.run_cases(cases, harness.read_skips(HERE / "skip.txt"), arguments.jobs)


if __name__ == "__main__":
    sys.exit(main())
