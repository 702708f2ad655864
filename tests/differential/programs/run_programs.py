#!/usr/bin/env python3
"""Builds the programs in bare/, libc/ and threads/ at every level, and runs each under QEMU and gpusim.

Output, exit status and the number of guest instructions must be equal. A program may say in its
first lines how it wants to be built and run:

  // flags: -march=armv8.1-a+lse     more compiler flags
  // cpu: max                        QEMU's CPU model, where the default lacks an instruction
  // args: one "two words"           arguments; @DATA stands for the folder data/
  // cores: 8                        for its threads; their instructions are not counted, because
                                     who waits for whom, and how often, differs from run to run
  // folder: own                     runs in an empty folder where it may make files
  // oracle: host                    is compared with the host's Linux; QEMU lacks what it tests
"""

import contextlib
import fnmatch
import functools
import pathlib
import re
import shlex
import sys
import tempfile

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
DIRECTIVE = re.compile(r"^// (flags|cpu|args|cores|folder|oracle): (.*)$", re.M)
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
        self.has_folder = directives.get("folder") == "own"
        self.is_native = directives.get("oracle") == "host"
        self.arguments = [word.replace("@DATA", "data")
                          for word in shlex.split(directives.get("args", ""))]

    def elf(self, level):
        return f"{self.kind}-{self.source.stem}.{level}.elf"

    def command(self, level):
        libraries = ["-lgcc"] if self.kind == "bare" else ["-lm"]
        return [COMPILERS[self.source.suffix], f"-{level}", "-static", "-fno-pie", "-no-pie",
                *WARNINGS, *FLAGS[self.kind], *self.flags, self.source, *libraries]

    def native(self):
        return f"{self.kind}-{self.source.stem}.host"

    def native_command(self):
        return ["gcc", "-O1", *WARNINGS, *FLAGS[self.kind], *self.flags, self.source]

    def run_oracle(self, build, plugin, level):
        with self.folder() as folder:
            if self.is_native:
                command = [build.resolve() / self.native(), *self.arguments]
                return harness.Result(*harness.execute(command, 120, folder), None)
            return harness.run_qemu(plugin, (build / self.elf(level)).resolve(), self.arguments,
                                    self.cpu, cwd=folder)

    def run_gpusim(self, gpusim, build, level, mode, options):
        with self.folder() as folder:
            if self.has_folder:
                options = [*options, "--root", folder]
            return harness.run_gpusim(gpusim.resolve(), (build / self.elf(level)).resolve(), mode,
                                      self.arguments, options, cwd=folder)

    def folder(self):
        """Else that of the programs, so that data files have the same name everywhere."""
        return tempfile.TemporaryDirectory() if self.has_folder else contextlib.nullcontext(HERE)


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
    commands = {p.elf(level): p.command(level) for level in arguments.levels for p in programs}
    commands |= {p.native(): p.native_command() for p in programs if p.is_native}
    harness.build_all(commands, version + headers, arguments.build, arguments.jobs)

    cases = []
    for level in arguments.levels:
        for program in programs:
            oracle = functools.cache(functools.partial(program.run_oracle, arguments.build, plugin,
                                                       level))
            for mode in arguments.modes:
                if program.has_folder and mode != "one":
                    continue  # its copies would share the folder
                if program.cores:
                    if mode != "one":
                        continue
                    mode = f"cores{program.cores}"
                    harness.MODES[mode] = ["--cores", program.cores]
                def check(program=program, oracle=oracle, mode=mode, level=level):
                    got = program.run_gpusim(arguments.gpusim, arguments.build, level, mode,
                                             arguments.options)
                    expected = oracle()
                    if program.cores:
                        expected.guest_instructions = got.guest_instructions
                    return harness.compare(expected, got, mode)
                cases.append(harness.Case(program.name, level, mode, check))
    print(f"{len(programs)} programs at {', '.join(arguments.levels)}")
    return harness.run_cases(cases, harness.read_skips(HERE / "skip.txt"), arguments.jobs)


if __name__ == "__main__":
    sys.exit(main())
