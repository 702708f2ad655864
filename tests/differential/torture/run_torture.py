#!/usr/bin/env python3
"""Runs GCC's torture programs under gpusim and compares exit status and instruction counts.

The programs come from Debian's package gcc-12-source and are unpacked and built below --build. A
manifest per ISA says which of them are usable, and what QEMU counts for them; where there is no
count, or another compiler built another ELF, QEMU counts.
"""

import concurrent.futures
import dataclasses
import fnmatch
import functools
import hashlib
import itertools
import pathlib
import re
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "qemu"))
import gcc_suite  # noqa: E402
import harness  # noqa: E402

LEVELS = ("O0", "O1", "O2", "O3", "Os")
TIMEOUT_S = 900

DG_OPTIONS = re.compile(r'\{ *dg-(?:additional-)?options *\{? *"([^"]*)" *\}? *\}')
X_FLAGS = re.compile(r'additional_flags="(-[^"]*)"|^ *lappend additional_flags "(-[^"]*)"', re.M)


@dataclasses.dataclass(frozen=True)
class Isa:
    """What programs are built with, and which; skips and refusals have files of their own."""

    name: str
    compiler: str
    manifest: str
    refused: str
    skipped: str
    flags: tuple[str, ...] = ("-fno-pie", "-no-pie")


ISAS = {isa.name: isa for isa in (
    Isa("aarch64", gcc_suite.COMPILER, "manifest-a64.tsv", "refused.txt", "skip.txt"),
    Isa("riscv64", "/usr/bin/riscv64-linux-gnu-gcc", "manifest-riscv64.tsv",
        "refused-riscv64.txt", "skip-riscv64.txt"),
    # Debian has no C library of Linux for it: headers are those of a library for bare programs.
    Isa("riscv32", "/usr/bin/riscv64-unknown-elf-gcc", "manifest-riscv32.tsv",
        "refused-riscv32.txt", "skip-riscv32.txt",
        ("-march=rv32imafdc", "-mabi=ilp32d", "-isystem",
         "/usr/lib/picolibc/riscv64-unknown-elf/include")))}


def read_manifest(path):
    """name → {level: (instructions, beginning of the ELF's SHA-256)}; without counts, none."""
    manifest = {}
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            name, *fields = line.split("\t")
            manifest[name] = {level: (int(count), sha) for level, count, sha
                              in zip(LEVELS, fields[0::2], fields[1::2], strict=bool(fields))}
    return manifest


def sha256(elf):
    return hashlib.sha256(elf.read_bytes()).hexdigest()[:12]


def program_flags(source):
    """The flags that a test asks for in itself or in the .x file beside it.

    Only those without a condition on the target: they are for other machines.
    """
    text = source.read_text(errors="replace")
    flags = " ".join(DG_OPTIONS.findall(text))
    if "SIGNAL_SUPPRESS" in text:
        flags += " -DSIGNAL_SUPPRESS"
    if source.parent.name == "ieee":
        flags += " -ffloat-store -fno-inline"
    beside = source.with_suffix(".x")
    if beside.exists():
        flags += " " + " ".join("".join(pair) for pair in X_FLAGS.findall(beside.read_text()))
    return flags.split()


def elf_name(name):
    return name.replace("/", "__") + ".elf"


def build(isa, names, level, sources, folder, jobs):
    version = harness.compiler_version(isa.compiler)
    plain = [isa.compiler, *isa.flags]
    runtime = HERE / "runtime"
    harness.build_all({
        "rt.o": [*plain, "-O2", "-ffreestanding", "-fno-tree-loop-distribute-patterns",
                 "-ffunction-sections", "-c", runtime / "rt.c"],
        "crt0.o": [*plain, "-c", runtime / "crt0.S"],
    }, version, folder / "runtime", jobs)
    objects = [folder / "runtime" / "crt0.o", folder / "runtime" / "rt.o"]
    runtime_text = "".join((runtime / f).read_text() for f in ("rt.c", "crt0.S"))
    commands = {}
    for name in names:
        source = sources / f"{name}.c"
        commands[elf_name(name)] = [
            *plain, f"-{level}", "-w", *program_flags(source), "-static", "-nostdlib",
            "-nostartfiles", "-Wl,--gc-sections", source, *objects, "-lgcc"]
    harness.build_all(commands, version + runtime_text, folder / level, jobs)


def measure(isa, elf, plugin):
    measured = harness.run_qemu(plugin, elf, isa=isa.name)
    if measured.status != 0:
        raise RuntimeError(f"{elf}: status {measured.status} under QEMU")
    return measured.guest_instructions


def expected_count(isa, elf, known, plugin):
    if known and sha256(elf) == known[1]:
        return known[0]
    return measure(isa, elf, plugin())


def write_manifest(isa, folder, names, plugin, jobs):
    """Measures everything anew, for another compiler or a changed run-time."""
    def line(name):
        elves = [folder / level / elf_name(name) for level in LEVELS]
        return "\t".join([name, *(f"{measure(isa, elf, plugin)}\t{sha256(elf)}" for elf in elves)])

    path = HERE / isa.manifest
    comments = [line for line in path.read_text().splitlines() if line.startswith("#")]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        path.write_text("\n".join([*comments, *pool.map(line, names)]) + "\n")


def why_not_refused(got):
    """A program that runs code which it wrote: a fault that says so, and nothing else, is right."""
    if got.status == 139 and b"written by the program itself" in got.stderr:
        return None
    return f"status {got.status}, expected a fault that tells why: {harness.first_line(got.stderr)}"


def main():
    def more(parser):
        parser.add_argument("--write-manifest", action="store_true",
                            help="measure with QEMU and do nothing else")
        parser.add_argument("--isa", choices=ISAS, default="aarch64")

    arguments = harness.parse_arguments(__doc__.splitlines()[0], levels=",".join(LEVELS), more=more)
    isa = ISAS[arguments.isa]
    manifest = read_manifest(HERE / isa.manifest)
    names = [name for name in manifest if fnmatch.fnmatchcase(name, arguments.only)]
    sources = gcc_suite.unpack(arguments.build, "gcc.c-torture/execute")
    plugin = functools.cache(lambda: harness.build_plugin(arguments.build.parent / "plugin"))
    refused = harness.read_skips(HERE / isa.refused)
    programs = arguments.build / isa.name if isa.name != "aarch64" else arguments.build

    if arguments.write_manifest:
        for level in LEVELS:
            build(isa, names, level, sources, programs, arguments.jobs)
        write_manifest(isa, programs, names, plugin(), arguments.jobs)
        return 0

    cases = []
    for level in arguments.levels:
        drawn = harness.draw(arguments, names, level)
        chosen = [name for name in names if name in drawn]
        build(isa, chosen, level, sources, programs, arguments.jobs)
        for name, engine in itertools.product(chosen, arguments.engines):
            elf = programs / level / elf_name(name)
            expect = functools.cache(functools.partial(expected_count, isa, elf,
                                                       manifest[name].get(level), plugin))
            for mode in arguments.modes:
                def check(elf=elf, expect=expect, mode=mode, name=name, level=level, engine=engine):
                    got = harness.run_gpusim(arguments.gpusim, elf, mode, timeout_s=TIMEOUT_S,
                                             options=arguments.options, engine=engine)
                    if harness.is_skipped(refused, name, level, mode):
                        return why_not_refused(got)
                    return harness.compare(harness.Result(0, None, b"", expect()), got, mode)
                cases.append(harness.Case(name, level, mode, check, engine))
    skips = harness.read_skips(HERE / isa.skipped)
    return harness.run_cases(cases, skips, arguments.jobs)


if __name__ == "__main__":
    sys.exit(main())
