#!/usr/bin/env python3
"""Runs the self-checking programs of GCC's dg suites under gpusim, and compares with QEMU.

  neon       gcc.target/aarch64/advsimd-intrinsics with the flags of a plain v8.0-A target
  neon-v8.6  the same with every extension that they ask for
  vect       gcc.dg/vect: loops for the auto-vectoriser

Each program is linked with the torture programs' small run-time, or with static glibc where that
lacks something. What does not compile, or does not pass under qemu-aarch64, is no test; how many
there must be at least stands in SUITES. Output, exit status and instruction count must be equal.
"""

import concurrent.futures
import fnmatch
import functools
import itertools
import pathlib
import sys
from dataclasses import dataclass, replace

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "qemu"))
import gcc_suite  # noqa: E402
import harness  # noqa: E402
from gcc_suite import COMPILER  # noqa: E402

TIMEOUT_S = 300
# Which groups of gcc.dg/vect ask for what (vect.exp), by the first pattern that fits.
VECT_FLAGS = (
    ("no-vfa-*", "--param vect-max-version-for-alias-checks=0"),
    ("no-fast-math-*", "-fno-fast-math"), ("fast-math-*", "-ffast-math"),
    ("no-math-errno-*", "-fno-math-errno"), ("wrapv-*", "-fwrapv"), ("trapv-*", "-ftrapv"),
    ("no-tree-dce-*", "-fno-tree-dce"), ("no-section-anchors-*", "-fno-section-anchors"),
    ("*section-anchors-*", "-fsection-anchors"), ("unswitch-loops-*", "-funswitch-loops"),
    ("no-trapping-math-*", "-fno-trapping-math"),
    ("no-scevccp-noreassoc-*", "-fno-tree-scev-cprop -fno-tree-reassoc"),
    ("no-scevccp-*", "-fno-tree-scev-cprop"), ("no-tree-dom-*", "-fno-tree-dominator-opts"),
    ("no-tree-pre-*", "-fno-tree-pre"), ("no-tree-reassoc-*", "-fno-tree-reassoc"),
    ("no-tree-fre-*", "-fno-tree-fre"), ("no-fre-pre*", "-fno-tree-fre -fno-tree-pre"),
    ("no-tree-sra-*", "-fno-tree-sra"), ("O3-*", "-O3 -fno-ipa-cp-clone"), ("O1-*", "-O1"),
    ("O-*", "-O"), ("Os-vect-*", "-Os"), ("vec-scal-*", "-O"))
FEATURES = {"arm_v8_2a_i8mm": ["-march=armv8.2-a+i8mm"],
            "arm_v8_2a_dotprod_neon": ["-march=armv8.2-a+dotprod"]}


@dataclass
class Suite:
    path: str
    flags: list
    levels: str
    usable: int  # how many programs there must be at least, at any level
    patterns: tuple = ("*.c",)


SUITES = {
    "neon": Suite("gcc.target/aarch64/advsimd-intrinsics", [], "O0,O1,O2,O3,Os", 190),
    "neon-v8.6": Suite("gcc.target/aarch64/advsimd-intrinsics",
                       ["-march=armv8.6-a+fp16+fp16fml+dotprod+bf16+i8mm"],
                       "O0,O1,O2,O3,Os", 300),
    "vect": Suite("gcc.dg/vect",
                  ["-ftree-vectorize", "-fno-tree-loop-distribute-patterns",
                   "-fno-vect-cost-model", "-fno-common"], "O2,O3", 933,
                  ("*.c", "tsvc/*.c")),
}


def shorten_tsvc(root):
    """The loops of tsvc/ run for minutes: fewer rounds, and the sum is printed, not checked.

    The sum that a program expects goes with its number of rounds; QEMU's tells as well.
    """
    header = root / "tsvc" / "tsvc.h"
    text = header.read_text()
    show = ("union { double d; unsigned long u; } bits = {result}; "
            "printf(\"%lx\\n\", bits.u); return;")
    for old, new in (("#define iterations 10000\n", "#define iterations 256\n"),
                     ("get_expected_result(fname);\n", f"get_expected_result(fname); {show}\n")):
        if new not in text:
            if old not in text:
                sys.exit(f"{header}: not the file that this test knows")
            text = text.replace(old, new)
    header.write_text(text)


class Program:
    def __init__(self, suite, source, root):
        self.source = source
        self.name = str(source.relative_to(root).with_suffix(""))
        directives = gcc_suite.Directives(source.read_text(errors="replace"))
        self.runs = directives.action in (None, "run")
        flags = suite.flags
        if suite.path.endswith("vect"):
            flags = [*flags, *next((more.split() for pattern, more in VECT_FLAGS
                                    if fnmatch.fnmatchcase(source.name, pattern)), [])]
            flags = flags if directives.options is None else directives.options
            for feature in directives.features:
                flags = [*flags, *FEATURES.get(feature, [])]
            flags = [*flags, *directives.additional]
        self.flags = [flag for flag in flags if not flag.startswith(("-fdump", "-save", "--save"))]
        later = any(flag.startswith("-march=") for flag in self.flags)
        self.cpu = "max" if later else harness.ORACLE_CPU

    def elf(self, kind):
        return f"{self.name.replace('/', '__')}.{kind}.elf"

    def command(self, kind, level, objects):
        libraries = {"bare": ["-nostdlib", "-nostartfiles", *objects, "-lgcc"], "libc": ["-lm"]}
        return [COMPILER, f"-{level}", *self.flags, "-w", "-static", "-fno-pie", "-no-pie",
                "-Wl,--gc-sections", self.source, *libraries[kind]]


def build(programs, level, folder, jobs, version):
    """Gives (program, ELF, kind) of all that can be built."""
    runtime = HERE.parent / "torture" / "runtime"
    plain = [COMPILER, "-fno-pie", "-no-pie", "-O2", "-ffreestanding", "-ffunction-sections",
             "-fno-tree-loop-distribute-patterns", "-c"]
    sources = [runtime / "rt.c", runtime / "crt0.S", HERE / "more.c"]
    harness.build_all({f"{source.stem}.o": [*plain, source] for source in sources}, version,
                      folder / "runtime", jobs)
    objects = [folder / "runtime" / f"{source.stem}.o" for source in sources]
    version += "".join(source.read_text() for source in sources)
    built, left = [], programs
    for kind in ("bare", "libc"):
        problems = harness.try_build(
            {p.elf(kind): p.command(kind, level, objects) for p in left}, version,
            folder / f"{level}-{kind}", jobs)
        built += [(p, folder / f"{level}-{kind}" / p.elf(kind), kind)
                  for p in left if p.elf(kind) not in problems]
        left = [p for p in left if p.elf(kind) in problems]
    return built, left


def compare(program, kind, expected, got, mode):
    # Another glibc function runs where another processor is found: no count to compare.
    if kind == "libc" and program.cpu != harness.ORACLE_CPU and got.guest_instructions is not None:
        copies = harness.LANES if mode == "lanes" else 1
        expected = replace(expected, guest_instructions=got.guest_instructions / copies)
    return harness.compare(expected, got, mode)


def main():
    arguments = harness.parse_arguments(
        __doc__.splitlines()[0], levels="", more=lambda parser: parser.add_argument(
            "--suite", choices=SUITES, required=True))
    suite = SUITES[arguments.suite]
    levels = [level for level in arguments.levels if level] or suite.levels.split(",")
    root = gcc_suite.unpack(arguments.build, suite.path)
    if arguments.suite == "vect":
        shorten_tsvc(root)
    plugin = harness.build_plugin(arguments.build.parent / "plugin")
    version = harness.compiler_version(COMPILER)
    sources = sorted(itertools.chain(*(root.glob(pattern) for pattern in suite.patterns)))
    programs = [p for p in (Program(suite, source, root) for source in sources)
                if p.runs and fnmatch.fnmatchcase(p.name, arguments.only)]

    cases, left_out, status = [], 0, 0
    for level in levels:
        drawn = harness.draw(arguments, [p.name for p in programs], level)
        chosen = [p for p in programs if p.name in drawn]
        built, unbuilt = build(chosen, level, arguments.build / f"built-{arguments.suite}",
                               arguments.jobs,
                               version)
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            oracles = list(pool.map(lambda item: harness.run_qemu(
                plugin, item[1], cpu=item[0].cpu, timeout_s=TIMEOUT_S), built))
        usable = [(p, elf, kind, oracle)
                  for (p, elf, kind), oracle in zip(built, oracles) if oracle.status == 0]
        failing = [p.name for (p, _, _), oracle in zip(built, oracles) if oracle.status != 0]
        print(f"{arguments.suite} -{level}: {len(usable)} programs; {len(unbuilt)} do not build, "
              f"{len(failing)} do not pass under qemu-aarch64: {' '.join(failing)}")
        for p, _, _, oracle in usable:
            if not harness.is_worth_it("simd", "one", oracle.guest_instructions):
                print(f"{p.name} -{level}: not run, {oracle.guest_instructions} instructions")
        whole = arguments.sample == 1 and arguments.only == "*"
        if whole and len(usable) < suite.usable:
            print(f"FAIL -{level}: there should be {suite.usable} programs at least")
            status = 1
        for (p, elf, kind, oracle), engine, mode in itertools.product(
                usable, arguments.engines, arguments.modes):
            if not harness.is_worth_it(engine, mode, oracle.guest_instructions):
                left_out += 1
                continue

            def check(p=p, elf=elf, kind=kind, oracle=oracle, engine=engine, mode=mode):
                got = harness.run_gpusim(arguments.gpusim, elf, mode, timeout_s=TIMEOUT_S,
                                         options=arguments.options, engine=engine)
                return compare(p, kind, oracle, got, mode)
            cases.append(harness.Case(p.name, level, mode, check, engine))
    if left_out:
        print(f"{left_out} runs left out that would take long")
    skips = harness.read_skips(HERE / "skip.txt")
    return harness.run_cases(cases, skips, arguments.jobs) or status


if __name__ == "__main__":
    sys.exit(main())
