#!/usr/bin/env python3
"""Builds the programs in bare/, libc/ and threads/ at every level, and runs each under QEMU and
gpusim.

Output, exit status and the number of guest instructions must be equal. A program may say in its
first lines how it wants to be built and run:

  // isa: aarch64                    has instructions or structures of this ISA; others leave it out
  // bits: 64                        needs registers of that size: __int128, atomics of 64 bits
  // flags: -fno-inline              more compiler flags
  // aarch64 flags: -march=armv8-a   the same, for one ISA
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

COMPILERS = {".c": "-linux-gnu-gcc", ".cc": "-linux-gnu-g++"}  # behind /usr/bin/<isa>
# Debian has no C library of Linux for it, so that it has the programs in bare/ alone.
BARE_COMPILERS = {"riscv32": "/usr/bin/riscv64-unknown-elf-gcc"}
FLAGS = {
    "bare": ["-ffreestanding", "-nostdlib", "-fno-tree-loop-distribute-patterns",
             "-fno-stack-protector", "-fno-math-errno"],
    "libc": [],
    "threads": ["-pthread"],
}
# libgcc's outline atomics ask getauxval, which a program without libc has not got.
ISA_FLAGS = {("aarch64", "bare"): ["-mno-outline-atomics"],
             ("riscv32", "bare"): ["-march=rv32imafdc", "-mabi=ilp32d"]}
ISA_LIBRARIES = {"riscv64": ["-latomic"]}  # atomics of bytes and halfwords
# QEMU has no set_robust_list. Where Linux has, glibc's start-up notes that in one instruction more;
# its A64 code has no branch there.
MORE_INSTRUCTIONS = {"riscv64": 1}
DIRECTIVE = re.compile(r"^// (flags|\w+ flags|isa|bits|cpu|args|cores|folder|oracle): (.*)$", re.M)
# What a compiler may print: also the programs should be clean.
WARNINGS = ["-Wall", "-Wextra", "-Wno-unknown-pragmas"]


def compiler(isa, suffix):
    return BARE_COMPILERS.get(isa, f"/usr/bin/{isa}{COMPILERS[suffix]}")


class Program:
    def __init__(self, source, isa):
        self.source = source
        self.isa = isa
        self.kind = source.parent.name
        self.name = f"{self.kind}/{source.stem}"
        directives = dict(DIRECTIVE.findall(source.read_text()[:600]))
        self.only_isa = directives.get("isa", isa)
        self.fits = "bits" not in directives or isa not in BARE_COMPILERS
        self.flags = [flag for name in ("flags", f"{isa} flags")
                      for flag in shlex.split(directives.get(name, ""))]
        self.cpu = directives.get("cpu")
        self.cores = directives.get("cores")
        self.has_folder = directives.get("folder") == "own"
        self.is_native = directives.get("oracle") == "host"
        self.arguments = [word.replace("@DATA", "data")
                          for word in shlex.split(directives.get("args", ""))]

    def elf(self, level):
        prefix = "" if self.isa == "aarch64" else f"{self.isa}-"
        return f"{prefix}{self.kind}-{self.source.stem}.{level}.elf"

    def command(self, level):
        libraries = ["-lgcc"] if self.kind == "bare" else ["-lm"]
        libraries += ISA_LIBRARIES.get(self.isa, [])
        position = [] if self.isa in BARE_COMPILERS else ["-fno-pie", "-no-pie"]
        return [compiler(self.isa, self.source.suffix), f"-{level}", "-static", *position,
                *WARNINGS, *FLAGS[self.kind], *ISA_FLAGS.get((self.isa, self.kind), ()),
                *self.flags, self.source, *libraries]

    def native(self):
        return f"{self.kind}-{self.source.stem}.host"

    def native_command(self):
        return ["gcc", "-O1", *WARNINGS, *FLAGS[self.kind], *self.flags, self.source]

    def run_oracle(self, build, plugin, level):
        with self.folder() as folder:
            if self.is_native:
                command = [build.resolve() / self.native(), *self.arguments]
                return harness.Result(*harness.execute(command, 120, folder), None)
            result = harness.run_qemu(plugin, (build / self.elf(level)).resolve(), self.arguments,
                                      self.cpu, cwd=folder, isa=self.isa)
        if result.guest_instructions is not None and self.kind != "bare":
            result.guest_instructions += MORE_INSTRUCTIONS.get(self.isa, 0)
        return result

    def run_gpusim(self, gpusim, build, level, mode, options):
        with self.folder() as folder:
            if self.has_folder:
                options = [*options, "--root", folder]
            return harness.run_gpusim(gpusim.resolve(), (build / self.elf(level)).resolve(), mode,
                                      self.arguments, options, cwd=folder)

    def folder(self):
        """Else that of the programs, so that data files have the same name everywhere."""
        return tempfile.TemporaryDirectory() if self.has_folder else contextlib.nullcontext(HERE)


def all_programs(pattern, isa):
    sources = sorted((*HERE.glob("bare/*.c"), *HERE.glob("libc/*.c"), *HERE.glob("libc/*.cc"),
                      *HERE.glob("threads/*.c"), *HERE.glob("threads/*.cc")))
    programs = [Program(source, isa) for source in sources]
    return [p for p in programs
            if p.only_isa == isa and fnmatch.fnmatchcase(p.name, pattern)
            and p.fits and (p.kind == "bare" or isa not in BARE_COMPILERS)]


def main():
    arguments = harness.parse_arguments(
        __doc__.splitlines()[0], levels="O0,O1,O2,O3",
        more=lambda parser: parser.add_argument("--isa", choices=harness.ORACLES,
                                                default="aarch64"))
    programs = all_programs(arguments.only, arguments.isa)
    plugin = harness.build_plugin(arguments.build.parent / "plugin")
    version = "".join(harness.compiler_version(compiler(arguments.isa, suffix))
                      for suffix in COMPILERS)
    headers = "".join(header.read_text() for header in sorted(HERE.glob("*/*.h")))
    drawn = {level: harness.draw(arguments, [p.name for p in programs], level)
             for level in arguments.levels}
    commands = {p.elf(level): p.command(level) for level in arguments.levels for p in programs
                if p.name in drawn[level]}
    commands |= {p.native(): p.native_command() for p in programs
                 if p.is_native and any(p.name in names for names in drawn.values())}
    harness.build_all(commands, version + headers, arguments.build, arguments.jobs)

    cases = []
    for level in arguments.levels:
        for program in (p for p in programs if p.name in drawn[level]):
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
    print(", ".join(f"{len(drawn[level])} programs at -{level}" for level in arguments.levels))
    skips = "skip.txt" if arguments.isa == "aarch64" else f"skip-{arguments.isa}.txt"
    return harness.run_cases(cases, harness.read_skips(HERE / skips), arguments.jobs)


if __name__ == "__main__":
    sys.exit(main())
